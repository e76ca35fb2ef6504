//! Two admins that share nothing, the first of them down: the second has the service at once, and the first as soon as
//! it is there. Needs the feature `axum` of soul-client, and `testing` for the admins.
//!
//! ```sh
//! cargo run -p sdk-examples --bin two_admins
//! ```
//!
//! Expect:
//!
//! ```text
//! http://127.0.0.1:43215 is down: register … Connection refused (os error 111)
//! http://127.0.0.1:34731 has /shop/order/save
//! http://127.0.0.1:43215 is up and has /shop/order/save
//! ```

use std::{error::Error, net::SocketAddr, time::Duration};

use soul_client::{AdminsRule, ClientConfig, Dialect, SoulClient, soul_client, testing::FakeAdmin};

const LIMIT: Duration = Duration::from_secs(20);

#[soul_client(post, path = "/order/save", desc = "Save an order")]
async fn save() {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (first, second) = (FakeAdmin::start(Dialect::Any).await?, FakeAdmin::start(Dialect::Any).await?);
    first.down().await;

    let config = ClientConfig::builder()
        .admin_url(format!("{},{}", first.url(), second.url()))
        .admins_rule(AdminsRule::Each)
        .context_path("/shop")
        .retry_delay(Duration::from_millis(100), Duration::from_secs(1));
    let client = SoulClient::start(config.build()?, SocketAddr::from(([127, 0, 0, 1], 8188)))?;

    // Each admin has a state of its own.
    let mut status = client.watch();
    let one_of_two = status.wait_for(|now| now.admins[0].last_error.is_some() && !second.routes().is_empty());
    let now = tokio::time::timeout(LIMIT, one_of_two).await??.clone();
    if let Some(error) = &now.admins[0].last_error {
        println!("{} is down: {}", now.admins[0].url, error.chain());
    }
    println!("{} has {}", now.admins[1].url, second.routes().join(", "));

    first.up().await?;
    client.registered_within(LIMIT).await?;
    println!("{} is up and has {}", first.url(), first.routes().join(", "));
    client.shutdown().await;
    Ok(())
}
