use soul_client::soul_client;

struct Orders<T = ()>(T);

trait Store {}

#[soul_client(path = "/order")]
impl Clone for Orders {
    fn clone(&self) -> Self {
        Self(())
    }
}

#[soul_client(path = "/order")]
impl<T> Orders<T> {}

#[soul_client(path = "/order")]
impl dyn Store {}

#[soul_client(get, path = "/order")]
impl Orders {}

fn main() {}
