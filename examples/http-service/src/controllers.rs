//! Soul's two example controllers, with the same paths, annotated in the same two ways.
//!
//! The paths in `#[soul_client]` are the gateway's patterns (`*`, `**`); those in the routers are axum's
//! (`{id}`). The gateway takes the context path off before it sends a request on, so the routers do not have it.

use axum::{
    Json, Router,
    extract::{Path, Query},
    routing::{any, get, post, put},
};
use serde::{Deserialize, Serialize};
use soul_client::soul_client;

/// Both controllers, without their context path.
pub fn router() -> Router {
    Router::new()
        .route("/order/save", post(order::save))
        .route("/order/findById", get(order::find_by_id))
        .route("/order/path/{id}/{name}", get(order::by_path))
        .route("/order/path/{id}/name", get(order::by_path_and_name))
        .route("/test/payment", post(test::payment))
        .route("/test/findByUserId", get(test::find_by_user_id))
        .route("/test/path/{id}", any(test::by_path))
        .route("/test/path/{id}/name", any(test::by_path_and_name))
        .route("/test/putPathBody/{id}", put(test::put_path_body))
}

/// An order, in requests and answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// Number of the order.
    pub id: String,
    /// What it says.
    pub name: String,
}

/// A user, in requests and answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Number of the user.
    pub user_id: String,
    /// Name of the user.
    pub user_name: String,
}

/// A number in the query.
#[derive(Debug, Deserialize)]
struct ById {
    id: String,
}

/// A user's number in the query.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ByUserId {
    user_id: String,
}

/// A name in the query, which may be left out.
#[derive(Debug, Deserialize)]
struct ByName {
    #[serde(default)]
    name: String,
}

/// `OrderController`: the class gives the prefix, each handler registers a rule of its own.
#[soul_client(path = "/order")]
mod order {
    use super::*;

    #[soul_client(path = "/save", desc = "Save order")]
    pub(super) async fn save(Json(order): Json<Order>) -> Json<Order> {
        Json(Order { name: "hello world save order".into(), ..order })
    }

    #[soul_client(path = "/findById", desc = "Find by id")]
    pub(super) async fn find_by_id(Query(ById { id }): Query<ById>) -> Json<Order> {
        Json(Order { id, name: "hello world findById".into() })
    }

    #[soul_client(path = "/path/**")]
    pub(super) async fn by_path(Path((id, name)): Path<(String, String)>) -> Json<Order> {
        Json(Order { id, name: format!("hello world restful: {name}") })
    }

    #[soul_client(path = "/path/**/name")]
    pub(super) async fn by_path_and_name(Path(id): Path<String>) -> Json<Order> {
        Json(Order { name: format!("hello world restful inline {id}"), id })
    }
}

/// `HttpTestController`: a wildcard on the class registers one rule for everything in it.
#[soul_client(path = "/test/**")]
mod test {
    use super::*;

    pub(super) async fn payment(Json(user): Json<User>) -> Json<User> {
        Json(user)
    }

    pub(super) async fn find_by_user_id(Query(ByUserId { user_id }): Query<ByUserId>) -> Json<User> {
        Json(User { user_id, user_name: "hello world".into() })
    }

    pub(super) async fn by_path(Path(id): Path<String>, Query(ByName { name }): Query<ByName>) -> Json<User> {
        Json(User { user_id: id, user_name: format!("hello world {name}") })
    }

    pub(super) async fn by_path_and_name(Path(id): Path<String>) -> Json<User> {
        Json(User { user_id: id, user_name: "hello world name".into() })
    }

    pub(super) async fn put_path_body(Path(id): Path<String>, Json(user): Json<User>) -> Json<User> {
        Json(User { user_id: id, ..user })
    }
}
