//! Paths of routers, seen from the gateway: what a handler is mounted at, the gateway's matcher finds.

use axum::{Router, extract::Path, routing::get};
use soul_client::{
    ClientConfig, SoulClient,
    plan::{Attributes, ClassDeclaration, ClassDeclarations},
};
use soul_tests::harness::{DEADLINE, Part, client};
use tokio::net::TcpListener;

fn mounted(path: &'static str) -> Attributes {
    let mut route = Attributes::new(path);
    route.mounted = true;
    route
}

#[tokio::test]
async fn variables_and_tails_of_nested_routers_are_matched() {
    let part = Part::start(&[]).await;
    let said = |Path(parts): Path<Vec<(String, String)>>| async move {
        parts.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>()
    };
    let api = Router::new()
        .route("/", get(async || "root"))
        .route("/item/{id}", get(said))
        .route("/old/{id}", get(said))
        .route("/files/{*path}", get(said));
    let router = Router::new().nest("/api/{tenant}", api);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    let routes = ["/", "/item/{id}", "/old/:id", "/files/{*path}"].map(mounted);
    let routes = ClassDeclarations(vec![ClassDeclaration::new(None, routes.into())]).nested("/api/{tenant}");
    let config = ClientConfig::builder().admin_url(part.admin_url()).context_path("/shop");
    let service = SoulClient::builder(config.build().unwrap()).declarations(routes).start(address).unwrap();
    service.registered_within(DEADLINE).await.unwrap();
    part.gateway().learned("/shop", 4, 1).await;

    for (path, status, text) in [
        ("/api/acme", 200, "root"),
        ("/api/acme/item/7", 200, "tenant=acme id=7 "),
        ("/api/acme/old/7", 200, "tenant=acme id=7 "),
        ("/api/acme/files/a/b/c.txt", 200, "tenant=acme path=a/b/c.txt "),
        ("/api/acme/item/7/more", 404, ""),
        ("/item/7", 404, ""),
    ] {
        let response = client().get(format!("{}/shop{path}", part.gateway_url())).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        if status == 200 {
            assert_eq!(response.text().await.unwrap(), text, "{path}");
        }
    }
    service.shutdown().await;
    server.abort();
    part.stop().await;
}
