//! Beside attributes that rewrite the function, in either order, and beside inert ones.

use axum::debug_handler;
use soul_client::soul_client;
use tracing::instrument;

pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("/above-debug", "above_debug"),
    ("/above-instrument", "above_instrument"),
    ("/below-debug", "below_debug"),
    ("/below-instrument", "below_instrument"),
    ("/inert", "inert"),
];

#[soul_client(path = "/above-debug")]
#[debug_handler]
pub(crate) async fn above_debug() -> &'static str {
    "a"
}

#[debug_handler]
#[soul_client(path = "/below-debug")]
pub(crate) async fn below_debug() -> &'static str {
    "b"
}

#[soul_client(path = "/above-instrument")]
#[instrument(skip(order), fields(kind = "above"))]
pub(crate) async fn above_instrument(order: String) -> String {
    order
}

#[instrument]
#[soul_client(path = "/below-instrument")]
pub(crate) fn below_instrument(order: &str) -> &str {
    order
}

/// Documented above,
#[must_use]
#[soul_client(path = "/inert")]
/// and below.
#[inline]
#[deprecated(note = "still has to be registered")]
pub(crate) fn inert() -> u8 {
    1
}

#[tokio::test]
async fn every_attribute_had_its_effect() {
    assert_eq!(format!("{}{}", above_debug().await, below_debug().await), "ab");
    assert_eq!(above_instrument("x".into()).await, below_instrument("x"));
    #[expect(deprecated)]
    let one = inert();
    assert_eq!(one, 1);
}
