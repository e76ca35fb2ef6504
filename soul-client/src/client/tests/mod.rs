//! The life of a client: over a scripted transport and a paused clock, and over HTTP to an admin in this
//! process.

mod hostile;
mod logged;
mod over_http;
mod rounds;
mod scripted;
mod shenyu;
mod starting;
#[cfg(feature = "rustls")]
mod tls;

use std::{net::SocketAddr, time::Duration};

use super::SoulClientBuilder;
use crate::{
    SoulClient, Status,
    config::{ClientConfig, ClientConfigBuilder},
    route::{Annotation, Route},
};

const LISTENER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8188);

const ROUTES: [Route; 4] = [
    Route::new(Annotation::new("/a")),
    Route::new(Annotation::new("/b")),
    Route::new(Annotation::new("/c")),
    Route::new(Annotation::new("/d")),
];

/// Configured so that nothing about the machine has to be found out.
fn config() -> ClientConfigBuilder {
    ClientConfig::builder().context_path("/http").app_name("http").host("10.0.0.2")
}

fn builder(config: ClientConfigBuilder) -> SoulClientBuilder {
    SoulClient::builder(config.build().unwrap()).routes(ROUTES)
}

/// Waits until the status is as wanted, for hours if the clock is paused.
async fn until(client: &SoulClient, what: &str, wanted: impl FnMut(&Status) -> bool) {
    until_within(Duration::from_secs(20_000), client, what, wanted).await;
}

/// The limit is only there for a test that fails.
async fn until_within(
    limit: Duration,
    client: &SoulClient,
    what: &str,
    mut wanted: impl FnMut(&Status) -> bool,
) {
    let mut status = client.watch();
    let waited = tokio::time::timeout(limit, status.wait_for(|status| wanted(status))).await;
    assert!(waited.is_ok_and(|status| status.is_ok()), "waited for {what}, got {:#?}", client.status());
}
