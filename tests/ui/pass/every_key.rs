//! Every key at once, in a form that needs care.

use soul_client::soul_client;

pub(crate) const ROUTES: &[(&str, &str)] = &[("/a/{id}/{*rest}", "every_key"), ("/a/:id/*rest", "old_style")];

#[soul_client(
    path = "/a/{id}/{*rest}",
    rule_name = r#"the "one" rule"#,
    desc = "two\nlines",
    rpc_type = "springCloud",
    enabled = false,
    register_meta_data = true,
    crate = ::soul_client,
)]
pub(crate) fn every_key() {}

#[soul_client(path = "/a/:id/*rest", rpc_type = "http", desc = "", rule_name = "")]
pub(crate) fn old_style() {}

#[test]
fn functions_are_callable() {
    every_key();
    old_style();
}
