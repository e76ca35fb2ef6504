use soul_client::soul_client;

trait Orders {
    fn save(&self);
}

impl Orders for () {
    #[soul_client(path = "/order/save")]
    fn save(&self) {}
}

fn main() {}
