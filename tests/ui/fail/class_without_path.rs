soul_client::class! {}

fn main() {}
