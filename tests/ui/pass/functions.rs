//! Functions of every kind.

use std::fmt::Display;

use soul_client::soul_client;

pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("/async", "asynchronous"),
    ("/const", "constant"),
    ("/extern", "external"),
    ("/generic", "generic"),
    ("/inner", "inner"),
    ("/lifetimes", "lifetimes"),
    ("/private", "private"),
    ("/raw", "type"),
    ("/returns-impl", "returns_impl"),
    ("/several/1", "several"),
    ("/several/2", "several"),
];

#[soul_client(path = "/private")]
fn private() {}

#[soul_client(path = "/async")]
pub(crate) async fn asynchronous() -> &'static str {
    private();
    "async"
}

#[soul_client(path = "/const")]
pub(crate) const fn constant() -> u8 {
    1
}

#[soul_client(path = "/extern")]
pub(crate) extern "C" fn external() -> u8 {
    2
}

#[soul_client(path = "/generic")]
pub(crate) async fn generic<T, const N: usize>(items: [T; N]) -> String
where
    T: Display + Send,
{
    items.iter().map(ToString::to_string).collect()
}

#[soul_client(path = "/lifetimes")]
pub(crate) fn lifetimes<'a>(first: &'a str, _: &str) -> &'a str {
    first
}

#[soul_client(path = "/returns-impl")]
pub(crate) fn returns_impl() -> impl Iterator<Item = Result<impl Display, String>> {
    std::iter::once(Ok(3))
}

#[soul_client(path = "/raw")]
pub(crate) fn r#type() {}

#[soul_client(path = "/several/1")]
#[soul_client(path = "/several/2")]
pub(crate) fn several() {
    #[soul_client(path = "/inner")]
    fn inner() {}
    inner();
}

#[tokio::test]
async fn functions_are_unchanged() {
    assert_eq!(asynchronous().await, "async");
    assert_eq!(const { constant() } + external(), 3);
    assert_eq!(generic([1, 2]).await, "12");
    assert_eq!(lifetimes("a", "b"), "a");
    assert_eq!(returns_impl().flatten().map(|n| n.to_string()).collect::<String>(), "3");
    r#type();
    several();
}
