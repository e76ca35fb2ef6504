//! A service without axum: hyper answers, the routes are registered by hand, and the settings come from a file with the
//! keys of the Java clients. `Life` does around any server what `serve` does around axum. Needs the features `http`,
//! `rustls` and `file` of soul-client, and no others.
//!
//! ```sh
//! cargo run -p sdk-examples --bin hyper -- examples/sdk/application.yml
//! ```
//!
//! Expect one line for each admin that cannot be reached, at growing distance, while the service serves all the same:
//!
//! ```text
//! serving http://0.0.0.0:43127/ping
//! WARN not registered: log in at `http://127.0.0.1:9095` as `admin`: … Connection refused …
//! ```

use std::{convert::Infallible, error::Error};

use http_body_util::Full;
use hyper::{Request, Response, StatusCode, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, server::graceful::GracefulShutdown};
use soul_client::{
    ClientConfig, Life, SoulClient, Stop,
    route::{Annotation, Route},
};
use tokio::net::TcpListener;

const ROUTES: [Route; 1] = [Route::new(Annotation::new("/ping").desc("Says pong")).handler("answer")];

async fn answer<B>(request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = match request.uri().path() {
        "/ping" => (StatusCode::OK, "pong"),
        _ => (StatusCode::NOT_FOUND, "no such path"),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

/// Accepts until it is told to stop, and ends with the last request.
async fn serve(listener: TcpListener, mut stop: Stop) -> Result<(), std::io::Error> {
    let connections = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted?.0,
        };
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
        let connection = connections.watch(connection);
        tokio::spawn(async move { drop(connection.await) });
    }
    drop(listener);
    connections.shutdown().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let file = std::env::args().nth(1).unwrap_or_else(|| "application.yml".to_owned());
    let config = ClientConfig::from_file(file)?;

    let listener = TcpListener::bind("0.0.0.0:0").await?;
    let address = listener.local_addr()?;
    println!("serving http://{address}/ping");
    let client = SoulClient::builder(config).routes(ROUTES);
    Life::of(client).serve_with(address, |stop| serve(listener, stop)).await?;
    Ok(())
}
