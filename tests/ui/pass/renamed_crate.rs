//! `soul-client` under another name, and through a crate that re-exports it.

use ::soul_client as soul;

pub(crate) const ROUTES: &[(&str, &str)] =
    &[("/quoted", "quoted"), ("/reexported", "reexported"), ("/renamed", "renamed")];

pub(crate) mod deps {
    pub(crate) use soul_client as gateway_client;
}

#[soul::soul_client(path = "/renamed", crate = soul)]
pub(crate) fn renamed() {}

#[soul::soul_client(path = "/quoted", crate = "soul")]
pub(crate) fn quoted() {}

#[deps::gateway_client::soul_client(path = "/reexported", crate = self::deps::gateway_client)]
pub(crate) fn reexported() {}

#[soul::soul_client(path = "/renamed-class", crate = soul)]
pub(crate) mod class {}

#[test]
fn functions_are_callable() {
    renamed();
    quoted();
    reexported();
}
