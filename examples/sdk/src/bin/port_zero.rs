//! Two instances on ports that the system chooses: each announces the port of its own listener. Needs the feature
//! `axum` of soul-client.
//!
//! ```sh
//! cargo run --release -p soul-gateway-mini              # admin 127.0.0.1:9095, gateway 127.0.0.1:9195
//! cargo run -p sdk-examples --bin port_zero
//! for _ in 1 2 3 4; do curl 127.0.0.1:9195/shop/who; done
//! ```
//!
//! Expect answers of both, with their ports:
//!
//! ```text
//! serving http://0.0.0.0:41291
//! serving http://0.0.0.0:36545
//! ```

use std::{env, error::Error};

use axum::extract::State;
use soul_client::{ClientConfig, soul_client};
use tokio::net::TcpListener;

/// The state is the port.
#[soul_client(get, path = "/who", desc = "Who answers", state = u16)]
async fn who(State(port): State<u16>) -> String {
    format!("port {port}\n")
}

async fn instance(config: ClientConfig) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("0.0.0.0:0").await?;
    let address = listener.local_addr()?;
    println!("serving http://{address}");
    soul_client::serve(listener, soul_client::router()?.with_state(address.port()), config).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let admin = env::var("SOUL_ADMIN_URL").unwrap_or_else(|_| "http://127.0.0.1:9095".to_owned());
    let config = ClientConfig::builder().admin_url(admin).context_path("/shop").app_name("shop").build()?;
    tokio::try_join!(instance(config.clone()), instance(config))?;
    println!("stopped");
    Ok(())
}
