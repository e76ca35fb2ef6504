use soul_client::soul_client;

struct Orders;

#[soul_client(path = "/order")]
impl Orders {
    #[soul_client(get, path = "/find")]
    async fn find(&self) {}

    #[soul_client(get, path = "/save")]
    async fn save<T>(_: T) {}
}

#[soul_client(get, path = "/count")]
async fn count<const N: usize>() {}

#[soul_client(get, path = "/list")]
async fn list(_: impl Sized) {}

#[soul_client(path = "/purge", handler = purge)]
async fn purge() {}

#[soul_client(get, path = "/number", handler = 7)]
async fn number() {}

#[soul_client(get, path = "/own", handler = Self::own)]
async fn own() {}

fn main() {}
