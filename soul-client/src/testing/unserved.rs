//! Whether a router serves what is registered.

use axum::{
    Router,
    body::Body,
    http::{Method, Request, StatusCode},
};
use tower_service::Service;

use crate::route::{self, Collected, Place};

/// Paths of annotated handlers of this program that `router` answers 404 to, with the places of the annotations.
///
/// Each is asked for with a method that nobody has, so that no handler runs but those that take any method. A router
/// with a fallback that answers something else to everything hides what it does not serve.
///
/// # Examples
///
/// ```standalone_crate
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let router = axum::Router::new();
/// assert_eq!(soul_client::testing::unserved(router).await, []);
/// # }
/// ```
pub async fn unserved(router: Router) -> Vec<(String, Place)> {
    unserved_of(router, &route::collected()).await
}

/// As [`unserved`], of these routes.
pub async fn unserved_of(mut router: Router, collected: &Collected) -> Vec<(String, Place)> {
    let in_classes = collected
        .classes
        .iter()
        .flat_map(|entry| entry.routes.iter().map(|route| (entry.class.annotation.path, route)));
    let routes: Vec<_> = in_classes.chain(collected.routes.iter().map(|route| ("", route))).collect();
    let mut missing = Vec::new();
    for (prefix, route) in routes {
        let path =
            format!("{}/{}", prefix.trim_end_matches('/'), route.annotation.path.trim_start_matches('/'));
        if !is_served(&mut router, &example(&path)).await {
            missing.push((path, route.place));
        }
    }
    missing
}

async fn is_served(router: &mut Router, path: &str) -> bool {
    let method = Method::from_bytes(b"IS-IT-SERVED").unwrap_or(Method::TRACE);
    // A path that is none cannot be asked for, so nobody serves it.
    let Ok(request) = Request::builder().method(method).uri(path).body(Body::empty()) else { return false };
    match router.call(request).await {
        Ok(response) => response.status() != StatusCode::NOT_FOUND,
        Err(never) => match never {},
    }
}

/// A path that the pattern stands for.
fn example(path: &str) -> String {
    let segment = |segment: &str| match segment {
        "**" => "x/y".to_owned(),
        segment if segment.starts_with([':', '*', '{']) => "x".to_owned(),
        segment => segment.replace('*', "x"),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use axum::routing::{any, get};

    use super::*;
    use crate::route::{Annotation, Class, Route};

    #[tokio::test]
    async fn what_is_not_served_is_named() {
        let router = Router::new()
            .route("/order/save", get(async || "saved"))
            .route("/order/{id}", get(async || "one"))
            .route("/find/{*rest}", any(async || "found"))
            .with_state(());
        let route = |path| Route::new(Annotation::new(path)).module("m");
        let free = |path| Route::new(Annotation::new(path));
        let collected = Collected::group(
            [Class::new("m", Annotation::new("/order"))],
            [
                route("/save"),
                route("/{id}"),
                route("/a/b"),
                free("/find/**"),
                free("/lost"),
                free("/order/:id"),
            ],
        );
        let missing: Vec<_> =
            unserved_of(router, &collected).await.into_iter().map(|(path, _)| path).collect();
        assert_eq!(missing, ["/order/a/b", "/lost"]);
    }
}
