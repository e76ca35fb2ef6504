//! A service that starts, prints which address it announces and why, and ends: the program that tests run in network
//! namespaces of their own. Settings come from the environment; `LATER` is a command that changes the network
//! once the first address was announced, after which another one is waited for.

use std::{error::Error, net::SocketAddr, process::Command, time::Duration};

use soul_client::{
    ClientConfig, SoulClient, Status,
    route::{Annotation, Route},
};

/// Longer than any situation takes: the admins' names are given five seconds, and rounds are up to four apart.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_ansi(false).without_time().init();
    let listener: SocketAddr = std::env::args().nth(1).ok_or("usage: announced-address LISTENER")?.parse()?;
    let listener = tokio::net::TcpListener::bind(listener).await?;
    let client = SoulClient::builder(ClientConfig::from_env()?)
        .routes([Route::new(Annotation::new("/list"))])
        .start(listener.local_addr()?)?;

    let first = announced(&client, "").await?;
    if let Ok(later) = std::env::var("LATER") {
        let changed = Command::new("sh").args(["-ec", &later]).status()?;
        if !changed.success() {
            return Err("the network cannot be changed".into());
        }
        announced(&client, &first).await?;
    }
    client.shutdown().await;
    Ok(())
}

/// Waits for an address other than `before`, and prints it.
async fn announced(client: &SoulClient, before: &str) -> Result<String, Box<dyn Error>> {
    let mut status = client.watch();
    let is_new = |status: &Status| {
        status.admins[0].announced.as_ref().is_some_and(|announced| announced.to_string() != before)
    };
    let status = tokio::time::timeout(LIMIT, status.wait_for(is_new)).await??;
    let announced = status.admins[0].announced.clone().ok_or("no address")?;
    println!("announced {announced} because {}", announced.reason());
    Ok(announced.to_string())
}
