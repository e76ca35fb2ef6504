use soul_client::soul_client;

#[soul_client(path = "/order/save", rpc_type = "springcloud")]
fn save() {}

#[soul_client(path = "/order/find", rpc_type = "dubbo")]
fn find() {}

fn main() {}
