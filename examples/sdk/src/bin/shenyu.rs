//! A service behind Apache ShenYu whose routes are mounted and registered by one annotation each, and whose life is one
//! call: bind, register, say that it is still there, and on Ctrl-C leave without losing a request. Needs the feature `axum`
//! of soul-client, and `testing` for the admin.
//!
//! ```sh
//! cargo run -p sdk-examples --bin shenyu        # against an admin in this same process, which needs no Java
//!
//! # Against your own admin, found out by `auto` to be of whatever release it is:
//! SOUL_ADMIN_URL=http://127.0.0.1:9095 SOUL_USERNAME=admin SOUL_PASSWORD=123456 cargo run -p sdk-examples --bin shenyu
//! ```
//!
//! Expect, on the way in and, after Ctrl-C, on the way out:
//!
//! ```text
//! INFO found out what the admin is admins="http://127.0.0.1:34731" dialect=shenyu-2.7
//! INFO registering with the soul admin routes=2 app_name="orders" context_path="/orders" address=…
//! INFO registered routes=2 admin="http://127.0.0.1:34731"
//! INFO stopping at_most=25s
//! INFO offline admin="http://127.0.0.1:34731"
//! INFO stopped
//! ```

use std::error::Error;

use axum::extract::{Path, State};
use soul_client::{ClientConfig, Dialect, ShenyuVersion, soul_client, testing::FakeAdmin};
use tokio::net::TcpListener;

/// What the handlers share.
#[derive(Clone)]
struct Shop {
    name: &'static str,
}

/// Registered as `/orders/list`, and mounted as `/list`.
#[soul_client(get, path = "/list", desc = "List orders", state = Shop)]
async fn list(State(shop): State<Shop>) -> String {
    format!("orders of {}", shop.name)
}

/// Registered as `/orders/item/*`, which every release of ShenYu can match, and mounted as `/item/{id}`.
#[soul_client(get, path = "/item/{id}", desc = "One order")]
async fn item(Path(id): Path<u64>) -> String {
    format!("order {id}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    // In its own process in real life.
    let admin = FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_7)).await?;

    let mut config = ClientConfig::builder().env().context_path("/orders");
    if std::env::var_os("SOUL_ADMIN_URL").is_none() {
        config = config.admin_url(admin.url()).username(FakeAdmin::USERNAME).password(FakeAdmin::PASSWORD);
    }

    let router = soul_client::router()?.with_state(Shop { name: "the corner shop" });
    let listener = TcpListener::bind("0.0.0.0:0").await?;
    println!("serving http://{}/list", listener.local_addr()?);
    soul_client::serve(listener, router, config.build()?).await?;
    Ok(())
}
