//! `class!` for the module of a file, which the attribute cannot reach.

soul_client::class! { path = "/file", desc = "The class of a file" }

pub(crate) const ROUTES: &[(&str, &str)] = &[("/in-file", "in_file")];

#[soul_client::soul_client(path = "/in-file")]
pub(crate) fn in_file() {}

#[test]
fn function_is_callable() {
    in_file();
}
