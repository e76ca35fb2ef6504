//! Names its dependency: everything is collected, although nothing is called.

use orders as _;
use soul_client::{route::collected, soul_client};

#[soul_client(path = "/own")]
#[allow(dead_code, reason = "a router would name it")]
fn own() {}

fn main() {
    app::expect("collected", &app::lines(&collected()), &["- /order/list", "- /own", "/order /save"]);
}
