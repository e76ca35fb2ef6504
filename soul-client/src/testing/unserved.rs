//! Whether a router serves what is registered.

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Method, Request, StatusCode},
};
use tower_service::Service;

use crate::{
    Scope,
    mount::{encoded, join},
    route::{Collected, Place},
};

/// Registered paths that are answered 404, with the places of their annotations: of a [`Scope`] its own, of a plain
/// router those of the whole program.
///
/// This finds a prefix that a router has and the annotation has not, as well as a handler that was never mounted. Each
/// path is asked for with a method that nobody has, so that no handler runs but those that take any method. Where
/// something else than 404 is answered to a path that nobody can have, by a fallback, a path that is answered alike is
/// not served. So a layer that answers by itself, such as one that wants a login, is better left out of the test.
///
/// A class that stands for all its routes is not looked at itself, only the annotated handlers in it.
///
/// # Panics
/// When the scope has a mistake, see [`Scope::into_parts`].
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
pub async fn unserved(app: impl Into<Scope>) -> Vec<(String, Place)> {
    let (router, classes) = app.into().into_parts().unwrap_or_else(|error| panic!("{}", error.chain()));
    let routes = classes.0.iter().flat_map(|class| {
        let prefix = class.annotation.as_ref().map_or("", |class| &class.path);
        class.routes.iter().filter_map(move |route| Some((join(prefix, &route.path), route.place?)))
    });
    unserved_paths(router, routes).await
}

/// As [`unserved`], of these routes.
pub async fn unserved_of(router: Router, collected: &Collected) -> Vec<(String, Place)> {
    let in_classes = collected
        .classes
        .iter()
        .flat_map(|entry| entry.routes.iter().map(|route| (entry.class.annotation.path, route)));
    let routes = in_classes.chain(collected.routes.iter().map(|route| ("", route)));
    let routes = routes.map(|(prefix, route)| (join(prefix, route.annotation.path), route.place));
    unserved_paths(router, routes).await
}

async fn unserved_paths(
    mut router: Router,
    routes: impl Iterator<Item = (String, Place)>,
) -> Vec<(String, Place)> {
    // Deeper than any route, so that a variable does not stand for it.
    let nothing = ask(&mut router, &"/is-it-served-19d1d0b1".repeat(20)).await;
    let mut missing = Vec::new();
    for (path, place) in routes {
        let answer = ask(&mut router, &example(&path)).await;
        if answer.is_none() || answer == nothing {
            missing.push((path, place));
        }
    }
    missing
}

/// Status and beginning of the body; `None` for 404.
async fn ask(router: &mut Router, path: &str) -> Option<(StatusCode, Bytes)> {
    let method = Method::from_bytes(b"IS-IT-SERVED").unwrap_or(Method::TRACE);
    // A path that is none cannot be asked for, so nobody serves it.
    let request = Request::builder().method(method).uri(path).body(Body::empty()).ok()?;
    let response = match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    if status == StatusCode::NOT_FOUND {
        return None;
    }
    // What is longer, or ends in an error, is compared by its status alone.
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap_or_default();
    Some((status, body))
}

/// A path that the pattern stands for.
fn example(path: &str) -> String {
    let segment = |segment: &str| match segment {
        "**" => "x/y".to_owned(),
        segment if segment.starts_with([':', '*', '{']) => "x".to_owned(),
        segment => encoded(&segment.replace('*', "x")),
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

    #[tokio::test]
    async fn fallback_that_answers_everything_hides_nothing() {
        let router = Router::new().route("/a", get(async || "a")).fallback(async || "the page");
        let routes = [Route::new(Annotation::new("/a")), Route::new(Annotation::new("/lost"))];
        let missing = unserved_of(router, &Collected::group([], routes)).await;
        assert_eq!(missing.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), ["/lost"]);
    }

    #[tokio::test]
    async fn variable_at_the_root_hides_nothing_and_stands_for_itself() {
        let router = Router::new().route("/{tenant}", get(async || "t")).route("/a/b", get(async || "b"));
        let routes = ["/{tenant}", "/a/b", "/lost/b"];
        let routes = routes.map(|path| Route::new(Annotation::new(path)));
        let missing = unserved_of(router, &Collected::group([], routes)).await;
        let paths: Vec<_> = missing.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/lost/b"]);
    }

    #[tokio::test]
    async fn letters_that_no_request_has_are_not_served() {
        let router = Router::new().route("/订单", get(async || "never"));
        let routes = [Route::new(Annotation::new("/订单"))];
        assert_eq!(unserved_of(router, &Collected::group([], routes)).await.len(), 1);
    }

    #[tokio::test]
    async fn prefix_of_a_nested_router_is_missed() {
        let inner = Router::new().route("/order/save", get(async |_: axum::extract::State<u8>| "saved"));
        let router = Router::new().nest("/api", Router::new().nest("/v1", inner).with_state(7));
        let route = |path| Route::new(Annotation::new(path));
        let routes = [route("/order/save"), route("/api/order/save"), route("/api/v1/order/save")];
        let missing = unserved_of(router, &Collected::group([], routes)).await;
        let paths: Vec<_> = missing.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/api/order/save", "/order/save"]);
        assert!(missing[0].1.file.ends_with("unserved.rs"));
    }

    #[tokio::test]
    async fn handlers_of_a_class_that_stands_for_all_are_below_it() {
        let class = Class::new("m", Annotation::new("/test/**"));
        let collected = Collected::group([class], [Route::new(Annotation::new("/pay")).module("m")]);
        let router = Router::new().route("/test/pay", get(async || "paid"));
        assert_eq!(unserved_of(router, &collected).await, []);
        assert_eq!(unserved_of(Router::new(), &collected).await[0].0, "/test/pay");
    }
}
