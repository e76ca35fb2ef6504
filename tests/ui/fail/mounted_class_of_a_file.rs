soul_client::class! { get, path = "/order" }

fn main() {}
