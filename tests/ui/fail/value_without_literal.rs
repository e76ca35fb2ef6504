use soul_client::soul_client;

const PATH: &str = "/order/save";

#[soul_client(path = PATH)]
fn save() {}

#[soul_client(path = concat!("/order", "/find"))]
fn find() {}

fn main() {
    let _ = PATH;
}
