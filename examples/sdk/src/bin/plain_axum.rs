//! An ordinary axum service: its router stays as it is, the handlers are annotated, and the client is started and
//! stopped by hand. Needs soul-client as it comes.
//!
//! ```sh
//! cargo run --release -p soul-gateway-mini              # admin 127.0.0.1:9095, gateway 127.0.0.1:9195
//! cargo run -p sdk-examples --bin plain_axum
//! curl 127.0.0.1:9195/shop/order/7                      # -> order 7
//! ```
//!
//! Expect, and on Ctrl-C the last line:
//!
//! ```text
//! serving http://0.0.0.0:8188
//! INFO registering with the soul admin routes=2 app_name="shop" context_path="/shop" address=… because=…
//! INFO registered routes=2 admin="http://127.0.0.1:9095"
//! stopped
//! ```

use std::{env, error::Error};

use axum::{
    Router,
    extract::Path,
    routing::{get, post},
};
use soul_client::{ClientConfig, SoulClient, soul_client};
use tokio::net::TcpListener;

#[soul_client(path = "/order/save", desc = "Save an order")]
async fn save() -> &'static str {
    "saved"
}

/// The gateway's pattern for what axum calls `{id}`.
#[soul_client(path = "/order/*", desc = "One order")]
async fn find(Path(id): Path<u64>) -> String {
    format!("order {id}")
}

fn router() -> Router {
    Router::new().route("/order/save", post(save)).route("/order/{id}", get(find))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let listener = TcpListener::bind(env::var("LISTEN").as_deref().unwrap_or("0.0.0.0:8188")).await?;
    let address = listener.local_addr()?;
    println!("serving http://{address}");

    let admin = env::var("SOUL_ADMIN_URL").unwrap_or_else(|_| "http://127.0.0.1:9095".to_owned());
    let config = ClientConfig::builder().admin_url(admin).context_path("/shop").app_name("shop");
    let client = SoulClient::start(config.build()?, address)?;

    let stop = async { drop(soul_client::stop_signal().await) };
    axum::serve(listener, router()).with_graceful_shutdown(stop).await?;
    client.shutdown().await;
    println!("stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    /// The line that every service should have.
    #[tokio::test]
    async fn what_is_annotated_is_served() {
        assert_eq!(soul_client::testing::unserved(super::router()).await, []);
    }
}
