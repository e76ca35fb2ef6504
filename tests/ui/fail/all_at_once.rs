use soul_client::soul_client;

#[soul_client(
    path = "order list?",
    decs = "List orders",
    enabled = yes,
    rpc_type = "grpc",
    enabled = true,
)]
struct Orders;

// The item itself is still there: nothing else is reported.
fn main() {
    let _ = Orders;
}
