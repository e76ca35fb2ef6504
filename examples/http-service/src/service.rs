//! The running service: listens, then registers, and says of every answer which instance gave it.

use std::{error::Error, net::SocketAddr};

use axum::{
    http::{HeaderName, HeaderValue},
    middleware::map_response,
    response::Response,
};
use clap::Parser;
use soul_client::{ClientConfig, SoulClient};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::controllers;

/// Header of every answer: the address of the instance that gave it.
pub const SERVED_BY: &str = "x-served-by";

/// What the service is told; further settings of its registration are variables of the SDK, `SOUL_…`.
#[derive(Clone, Debug, Parser)]
#[command(name = "http-service", version, about = "Soul's example service in Rust", long_about = None)]
pub struct Options {
    /// Where it listens; port 0 takes a free one
    #[arg(long, env = "HTTP_SERVICE_LISTEN", default_value = "0.0.0.0:8188", value_name = "IP:PORT")]
    pub listen: SocketAddr,

    /// Admin to register with; repeat it, or list them with commas, for several
    #[arg(
        long,
        env = "SOUL_ADMIN_URL",
        default_value = "http://127.0.0.1:9095",
        value_name = "URL",
        value_delimiter = ','
    )]
    pub admin: Vec<String>,

    /// Prefix that names the service at the gateway
    #[arg(long, env = "SOUL_CONTEXT_PATH", default_value = "/http", value_name = "PATH")]
    pub context_path: String,

    /// Name of the application
    #[arg(long, env = "SOUL_APP_NAME", default_value = "http", value_name = "NAME")]
    pub app_name: String,
}

impl Options {
    /// The registration that these options ask for.
    ///
    /// # Errors
    /// When one of them cannot be registered; the error names it.
    pub fn client_config(&self) -> Result<ClientConfig, soul_client::Error> {
        let config = ClientConfig::builder().context_path(&self.context_path).app_name(&self.app_name);
        self.admin.iter().fold(config, |config, url| config.admin_url(url)).env().build()
    }
}

/// A service that answers and is registered.
#[derive(Debug)]
pub struct Service {
    addr: SocketAddr,
    client: SoulClient,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Service {
    /// Listens, serves, and begins to register; whether the admin is there decides nothing here.
    ///
    /// # Errors
    /// When it cannot listen, or there is nothing to register.
    pub async fn start(listen: SocketAddr, config: ClientConfig) -> Result<Self, Box<dyn Error>> {
        let listener =
            TcpListener::bind(listen).await.map_err(|e| format!("listen on `{listen}` (`--listen`): {e}"))?;
        let addr = listener.local_addr()?;

        let served_by = HeaderValue::from_str(&addr.to_string())?;
        let router = controllers::router().layer(map_response(move |mut response: Response| {
            response.headers_mut().insert(HeaderName::from_static(SERVED_BY), served_by.clone());
            std::future::ready(response)
        }));
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(
            axum::serve(listener, router)
                .with_graceful_shutdown(async {
                    // OK to ignore: a sender that is gone means the same as its word.
                    let _ = stopped.await;
                })
                .into_future(),
        );
        // Only now, with the real port: nobody is sent here before somebody answers.
        let client = SoulClient::start(config, addr)?;
        Ok(Self { addr, client, stop, server })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its registration.
    #[must_use]
    pub fn client(&self) -> &SoulClient {
        &self.client
    }

    /// Stops registering, answers what is in flight, ends.
    pub async fn shutdown(self) {
        self.client.shutdown().await;
        // OK to ignore: a server that is gone already needs no word.
        let _ = self.stop.send(());
        let _ = self.server.await;
    }
}
