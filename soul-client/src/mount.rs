//! Mounts what `#[soul_client(get, …)]` annotates, so that a path is written once.

use std::{any::Any, collections::BTreeMap};

use axum::{Router, routing::MethodRouter};

use crate::{
    error::{Error, Problem},
    route::{self, Collected, Mount, Route},
    wire::soul::is_pattern,
};

/// A router of every handler of the program whose annotation names a method and whose state is `S`, or that has none.
///
/// Layers and further routes go on top as with any router. To nest it, nest a [`Scope`](crate::Scope) instead, since
/// the gateway has to be told the prefix.
///
/// Wildcards of Soul are mounted, too: `/find/**` as `/find/{*rest}`, `*` as a variable, and axum 0.7's `:id` as `{id}`.
/// In a class that stands for all its routes, such as `/test/**`, handlers are mounted below `/test`.
///
/// # Errors
/// When two handlers have one path and method, or a path is none that axum has. Both places are named.
///
/// # Examples
///
/// ```standalone_crate
/// use axum::extract::{Path, State};
/// use soul_client::soul_client;
///
/// #[derive(Clone)]
/// struct Shop(&'static str);
///
/// #[soul_client(get, path = "/order/{id}")]
/// async fn find(Path(id): Path<u64>) -> String {
///     format!("order {id}")
/// }
///
/// #[soul_client(post, put, path = "/order", state = Shop)]
/// async fn save(State(shop): State<Shop>) -> &'static str {
///     shop.0
/// }
///
/// fn main() -> Result<(), soul_client::Error> {
///     let router: axum::Router = soul_client::router()?.with_state(Shop("books"));
/// #   drop(router);
///     Ok(())
/// }
/// ```
pub fn router<S: Clone + Send + Sync + 'static>() -> Result<Router<S>, Error> {
    router_of(&route::collected())
}

/// As [`router`], of these routes.
///
/// # Errors
/// As [`router`].
pub fn router_of<S: Clone + Send + Sync + 'static>(collected: &Collected) -> Result<Router<S>, Error> {
    let in_classes = collected
        .classes
        .iter()
        .flat_map(|entry| entry.routes.iter().map(|route| (entry.class.annotation.path, route)));
    let free = collected.routes.iter().map(|route| ("", route));
    let mut router = Router::new();
    let mut book = Book::default();
    for (prefix, route) in in_classes.chain(free) {
        let Some(mount) = route.mount else { continue };
        let Some(handlers) = handlers(mount) else { continue };
        if let Some(path) = book.enter(prefix, route, mount.methods) {
            router = router.route(&path, handlers);
        }
    }
    if book.problems.is_empty() { Ok(router) } else { Err(Error::config(book.problems)) }
}

/// What a router with the state `S` serves; `None` if it takes another one.
fn handlers<S: Clone + Send + Sync + 'static>(mount: Mount) -> Option<MethodRouter<S>> {
    let built: Box<dyn Any> = (mount.build)();
    match built.downcast::<MethodRouter<S>>() {
        Ok(handlers) => Some(*handlers),
        Err(other) => other.downcast::<MethodRouter<()>>().ok().map(|handlers| handlers.with_state(())),
    }
}

/// Those that [`router_of`] serves.
pub(crate) fn mounted_only<S: Clone + Send + Sync + 'static>(collected: &Collected) -> Collected {
    collected.only(|route| route.mount.is_some_and(|mount| handlers::<S>(mount).is_some()))
}

/// Those that a router is written for by hand.
pub(crate) fn plain_only(collected: &Collected) -> Collected {
    collected.only(|route| route.mount.is_none())
}

/// Methods of one path, each with its route.
type Handlers = Vec<(&'static str, Route)>;

/// What was mounted: it complains where axum would panic.
#[derive(Default)]
struct Book {
    /// By path without the names of its variables: the path, and who has which method.
    paths: BTreeMap<String, (String, Handlers)>,
    problems: Vec<Problem>,
}

impl Book {
    /// The path to mount a route at; `None` after a problem was noted.
    fn enter(&mut self, prefix: &str, route: &Route, methods: &'static [&'static str]) -> Option<String> {
        let written = join(prefix, route.annotation.path);
        let path = match axum_path(&written) {
            Ok(path) => path,
            Err(reason) => {
                self.problem(format!("`{written}` ({}) cannot be mounted: {reason}", route.place));
                return None;
            }
        };
        let (known, handlers) =
            self.paths.entry(nameless(&path)).or_insert_with(|| (path.clone(), Vec::new()));
        let clash = handlers.iter().find(|(method, _)| methods.contains(method)).copied();
        let differs = (*known != path).then(|| handlers.first().copied()).flatten();
        handlers.extend(methods.iter().map(|method| (*method, *route)));
        let (what, other) = match (clash, differs) {
            (Some((method, other)), _) => (format!("`{path}` is mounted twice for `{method}`"), other),
            (None, Some((_, other))) => {
                (format!("the variables of `{known}` and `{path}` have different names"), other)
            }
            (None, None) => return Some(path),
        };
        self.problem(format!("{what}, at {} and at {}", other.place, route.place));
        None
    }

    fn problem(&mut self, text: String) {
        self.problems.push(Problem::new("path", text));
    }
}

/// With one slash between the two. A class that stands for all its routes stands for what is below its path.
pub(crate) fn join(prefix: &str, path: &str) -> String {
    let prefix = if is_pattern(prefix) { prefix.trim_end_matches('*') } else { prefix };
    format!("{}/{}", prefix.trim_end_matches('/'), path.trim_start_matches('/'))
}

/// As axum 0.8 has it; the error is the end of a sentence.
fn axum_path(path: &str) -> Result<String, &'static str> {
    let segments: Vec<_> = path.split('/').collect();
    let last = segments.len() - 1;
    let mut written = Vec::with_capacity(segments.len());
    for (number, segment) in segments.into_iter().enumerate() {
        let inner = segment.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
        let rest = inner.unwrap_or(segment).strip_prefix('*').filter(|name| !name.is_empty());
        written.push(match (segment, rest) {
            ("**", _) if number == last => "{*rest}".to_owned(),
            ("*", _) => format!("{{p{number}}}"),
            (_, Some(name)) if number == last && is_name(name) => format!("{{*{name}}}"),
            (_, Some(_)) => return Err("a rest can only be the last segment"),
            _ if inner.is_some_and(is_name) => segment.to_owned(),
            _ if segment.strip_prefix(':').is_some_and(is_name) => format!("{{{}}}", &segment[1..]),
            _ if segment.contains(['{', '}', '*']) || segment.starts_with(':') => {
                return Err("a segment is a variable or it is none, as in `/order/{id}`");
            }
            _ => encoded(segment),
        });
    }
    Ok(written.join("/"))
}

/// As it stands in the first line of a request, which is what a router compares with.
pub(crate) fn encoded(path: &str) -> String {
    let mut written = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter.is_ascii_graphic() {
            written.push(letter);
        } else {
            let mut bytes = [0; 4];
            letter.encode_utf8(&mut bytes).bytes().for_each(|byte| written.push_str(&format!("%{byte:02X}")));
        }
    }
    written
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// `/a/{}/{*}`.
fn nameless(path: &str) -> String {
    let segment = |segment: &str| match segment.strip_prefix('{') {
        Some(rest) if rest.starts_with('*') => "{*}".to_owned(),
        Some(_) => "{}".to_owned(),
        None => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        __private::mount::{MethodFilter, erase, of, on},
        route::{Annotation, Class, Mount},
    };

    const GET: Mount = of(&["GET"], || erase::<()>(on(MethodFilter::GET, async || "get")));
    const POST: Mount = of(&["POST"], || erase::<()>(on(MethodFilter::POST, async || "post")));
    const WITH_STATE: Mount = of(&["GET"], || erase::<u8>(on(MethodFilter::GET, async || "state")));

    const fn route(path: &'static str, mount: Mount) -> Route {
        Route::new(Annotation::new(path)).module("m").mount(mount)
    }

    fn problems(routes: &[Route]) -> Vec<String> {
        match router_of::<()>(&Collected::group([], routes.iter().copied())) {
            Ok(_) => Vec::new(),
            Err(error) => error.problems().iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn paths_as_axum_has_them() {
        for (path, expected) in [
            ("/order/{id}", Ok("/order/{id}")),
            ("/order/:id", Ok("/order/{id}")),
            ("/find/**", Ok("/find/{*rest}")),
            ("/find/*rest", Ok("/find/{*rest}")),
            ("/订单/{编号}", Ok("/%E8%AE%A2%E5%8D%95/{编号}")),
            ("/a b/%41", Ok("/a%20b/%41")),
            ("/find/{*all}", Ok("/find/{*all}")),
            ("/a/*/b", Ok("/a/{p2}/b")),
            ("/a/", Ok("/a/")),
            ("/a/**/b", Err("last segment")),
            ("/a/{*r}/b", Err("last segment")),
            ("/a/x{id}", Err("is a variable or it is none")),
            ("/a/*.html", Err("last segment")),
        ] {
            match (axum_path(path), expected) {
                (Ok(path), Ok(expected)) => assert_eq!(path, expected),
                (Err(reason), Err(part)) => {
                    assert!(reason.contains(part) || part == "last segment", "{path}: {reason}")
                }
                (got, _) => panic!("{path}: {got:?}"),
            }
        }
    }

    #[test]
    fn clashes_are_told_and_do_not_panic() {
        assert!(problems(&[route("/a", GET), route("/a", POST), route("/b", WITH_STATE)]).is_empty());
        for (routes, part) in [
            (
                [route("/a", GET), Route::new(Annotation::new("/a")).module("n").mount(GET)],
                "mounted twice for `GET`",
            ),
            ([route("/a/{x}", GET), route("/a/{y}", POST)], "different names"),
            ([route("/a/{x}b", GET), route("/b", POST)], "cannot be mounted"),
        ] {
            let problems = problems(&routes);
            assert!(problems.len() == 1 && problems[0].contains(part), "{problems:?}");
            assert!(problems[0].contains("mount.rs:"), "{problems:?}");
        }
    }

    #[test]
    fn soul_is_told_wildcards_for_the_variables_of_mounted_handlers() {
        use crate::plan::{ClassDeclarations, Dialect, Properties, RegistrationPlan};

        let collected = Collected::group(
            [Class::new("m", Annotation::new("/order/"))],
            [route("{id}", GET), Route::new(Annotation::new("{id}")).module("m")],
        );
        let mut properties = Properties::new(Dialect::Any, "10.0.0.2");
        properties.server_lists = Some("http://a".into());
        properties.context_path = Some("/shop".into());
        properties.port = Some("80".into());
        let plan = RegistrationPlan::new(&properties, &ClassDeclarations::from(&collected)).unwrap();
        let paths: Vec<_> = plan.registrations().iter().map(|one| one.path()).collect();
        assert_eq!(paths, ["/shop/order/*", "/shop/order/{id}"]);
    }
}
