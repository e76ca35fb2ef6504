use soul_client::soul_client;

struct Orders;

impl Orders {
    #[soul_client(get, path = "/order/find")]
    async fn find() {}

    #[soul_client(get, path = "/order/new")]
    async fn new() -> Self {
        Self
    }
}

fn main() {
    let _ = (Orders::find(), Orders::new());
}
