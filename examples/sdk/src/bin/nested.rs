//! Routers in routers, with a state, a layer and a fallback: a [`Scope`] registers what it nests below the same prefix,
//! so that no prefix is written twice. Needs the feature `axum` of soul-client.
//!
//! ```sh
//! cargo run --release -p soul-gateway-mini              # admin 127.0.0.1:9095, gateway 127.0.0.1:9195
//! cargo run -p sdk-examples --bin nested
//! curl 127.0.0.1:9195/shop/api/v1/order/7               # -> order 7 of the corner shop
//! curl -X POST 127.0.0.1:9195/shop/api/admin/purge      # -> purged
//! ```

use std::{env, error::Error};

use axum::{http::StatusCode, middleware::map_response, response::Response};
use soul_client::{ClientConfig, Scope, serve};
use tokio::net::TcpListener;

/// What the handlers share.
#[derive(Clone)]
struct Shop {
    name: &'static str,
}

/// Mounted by their annotations.
mod orders {
    use axum::extract::{Path, State};
    use soul_client::{Scope, soul_client};

    use super::Shop;

    struct Orders;

    /// A controller: its path goes before those of its functions.
    #[soul_client(path = "/order")]
    impl Orders {
        #[soul_client(get, path = "/{id}", desc = "One order", state = Shop)]
        async fn find(State(shop): State<Shop>, Path(id): Path<u64>) -> String {
            format!("order {id} of {}", shop.name)
        }

        #[soul_client(post, put, path = "/save", desc = "Save an order")]
        async fn save() -> &'static str {
            "saved"
        }
    }

    pub(crate) fn scope() -> Scope<Shop> {
        Scope::mounted(module_path!())
    }
}

/// Mounted by hand.
mod admin {
    use axum::{Router, routing::post};
    use soul_client::{Scope, soul_client};

    use super::Shop;

    #[soul_client(path = "/purge", desc = "Forget all orders")]
    async fn purge() -> &'static str {
        "purged"
    }

    pub(crate) fn scope() -> Scope<Shop> {
        Scope::routed(module_path!(), Router::new().route("/purge", post(purge)))
    }
}

fn app() -> Scope {
    let served_by = async |mut answer: Response| {
        answer.headers_mut().insert("x-served-by", axum::http::HeaderValue::from_static("nested"));
        answer
    };
    let api = Scope::new()
        .nest("/v1", orders::scope())
        .nest("/admin", admin::scope())
        .map(|router| router.layer(map_response(served_by)));
    Scope::new()
        .nest("/api", api)
        .map(|router| router.fallback(async || (StatusCode::NOT_FOUND, "no such path")))
        .with_state(Shop { name: "the corner shop" })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let admin = env::var("SOUL_ADMIN_URL").unwrap_or_else(|_| "http://127.0.0.1:9095".to_owned());
    let config = ClientConfig::builder().admin_url(admin).context_path("/shop").app_name("shop");

    let listener = TcpListener::bind(env::var("LISTEN").as_deref().unwrap_or("0.0.0.0:8188")).await?;
    println!("serving http://{}", listener.local_addr()?);
    serve(listener, app(), config.build()?).await?;
    println!("stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn what_is_registered_is_served() {
        assert_eq!(soul_client::testing::unserved(super::app()).await, []);
    }
}
