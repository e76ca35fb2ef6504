//! A source made of a closure.

use std::future::Future;

use super::{BoxFuture, Discover, Listed};

/// A source made of a closure; see [`discover_fn`].
#[derive(Clone, Debug)]
pub struct DiscoverFn<F>(F);

/// Makes a source of a closure that is asked for the list of a service.
///
/// # Examples
/// ```
/// use soul_client::{balance::Upstream, call::discover::discover_fn};
///
/// let source = discover_fn(|service| async move { Ok(vec![Upstream::new(format!("{service}:8080"))]) });
/// # let _ = soul_client::call::Membership::builder("orders").source(source);
/// ```
pub fn discover_fn<F, Fut>(fetch: F) -> DiscoverFn<F>
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Listed> + Send + 'static,
{
    DiscoverFn(fetch)
}

impl<F, Fut> Discover for DiscoverFn<F>
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Listed> + Send + 'static,
{
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        Box::pin(self.0(service.to_owned()))
    }
}
