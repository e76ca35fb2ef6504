//! Soul's example service behind the gateway: every path of both controllers.

use http_service::Service;
use reqwest::Method;
use serde_json::{Value, json};
use soul_client::ClientConfig;
use soul_tests::harness::{DEADLINE, Part, client};

#[tokio::test]
async fn the_example_service_answers_on_every_path() {
    let part = Part::start(&[]).await;
    let config = ClientConfig::builder().admin_url(part.admin_url()).context_path("/http").app_name("http");
    let service = Service::start("127.0.0.1:0".parse().unwrap(), config.build().unwrap()).await.unwrap();
    service.client().registered_within(DEADLINE).await.unwrap();
    part.gateway().learned("/http", 5, 1).await;

    let order = |id: &str, name: &str| json!({ "id": id, "name": name });
    let user = |id: &str, name: &str| json!({ "userId": id, "userName": name });
    for (method, path, body, expected) in [
        (Method::GET, "/order/findById?id=95", None, order("95", "hello world findById")),
        (Method::POST, "/order/save", Some(order("1", "a")), order("1", "hello world save order")),
        (Method::GET, "/order/path/7/joe", None, order("7", "hello world restful: joe")),
        (Method::GET, "/order/path/7/name", None, order("7", "hello world restful inline 7")),
        (Method::POST, "/test/payment", Some(user("1", "b")), user("1", "b")),
        (Method::GET, "/test/findByUserId?userId=3", None, user("3", "hello world")),
        (Method::GET, "/test/path/5?name=%E4%BD%95", None, user("5", "hello world 何")),
        (Method::GET, "/test/path/5/name", None, user("5", "hello world name")),
        (Method::PUT, "/test/putPathBody/9", Some(user("1", "c")), user("9", "c")),
    ] {
        let url = format!("{}/http{path}", part.gateway_url());
        let request = client().request(method, &url);
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()[http_service::SERVED_BY], service.local_addr().to_string(), "{path}");
        assert_eq!(response.json::<Value>().await.unwrap(), expected, "{path}");
    }
    service.shutdown().await;
    part.stop().await;
}
