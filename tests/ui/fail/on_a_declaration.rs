use soul_client::soul_client;

trait Orders {
    #[soul_client(path = "/order/save")]
    fn save(&self);
}

fn main() {}
