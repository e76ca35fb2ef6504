//! The index gives what the plain ordered scan gives, errors included, whatever the conditions and the request.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::sample::select;

use super::{
    super::{
        super::view::{ContextFields, Field},
        entry::Gate,
        ordered::{Gated, Ordered},
        patch::Limits,
    },
    *,
};
use crate::model::address;

/// An entry: what was made of a row, and the conditions of that, which others made later may share.
#[derive(Clone, Debug)]
struct Entry {
    made: Arc<()>,
    gate: Arc<Gate>,
}

impl Gated for Entry {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn has_gate_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gate, &other.gate)
    }

    fn address(&self) -> usize {
        address(&self.made)
    }
}

fn entry(gate: Gate) -> Entry {
    Entry { made: Arc::new(()), gate: Arc::new(gate) }
}

/// Paths and patterns of few pieces, so that they meet.
fn pieces(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(select(pieces), 0..most).prop_map(|pieces| pieces.concat())
}

const PATTERN: &[&str] = &[
    "/", "/", "/", "/a", "/b", "/ab", "/a", "/**", "/*", "/{id}", "/{id:a+}", "/a*", "*", "a", " ", ",/",
    "?", "/%41", "/é",
];

const PATH: &[&str] =
    &["/", "/a", "/b", "/ab", "/a", "a", "%2F", "%61", "%", "%25", "\u{e9}", "/*", "%0A", "/A"];

const REGEX: &[&str] =
    &["/a/.*", "/a/b", "/(a|b)/.*", "/a+", "(?i)/A/.*", "[ab/]*", "a", "^/b/.*$", ".*/b", "1", "("];

const VALUE: &[&str] =
    &["1", "2", "3", " 1 ", "", "a", "é", "10.0.0.1", "10.0.0.2", "GET", "POST", "/a", "/a/b"];

/// More names than are looked up one by one.
const NAME: &[&str] = &[
    "x-a",
    "X-A",
    "x-b",
    "n1",
    "n2",
    "n3",
    "n4",
    "n5",
    "n6",
    "n7",
    "n8",
    "n9",
    "not a name",
    "text",
    "number",
    "",
];

prop_compose! {
    fn condition()(
        param_type in select(&["uri", "uri", "uri", "header", "header", "query", "host", "ip", "req_method", "post", "cookie"][..]),
        operator in select(&["match", "match", "match", "=", "=", "=", "like", "regEx", ">"][..]),
        name in select(NAME),
        value in select(VALUE),
        pattern in pieces(PATTERN, 6),
        regex in select(REGEX),
        present in prop::bool::weighted(0.97),
    ) -> Option<ConditionData> {
        let value = match (param_type, operator) {
            (_, "regEx") => regex,
            ("uri", _) => &pattern,
            _ => value,
        };
        Some(ConditionData {
            param_type: Some(param_type.to_owned()),
            operator: Some(operator.to_owned()),
            param_name: Some(name.to_owned()),
            param_value: present.then(|| value.to_owned()),
        })
    }
}

fn gate() -> impl Strategy<Value = Gate> {
    let mode = select(&[Some(0), Some(0), Some(1), Some(1), Some(7), None][..]);
    let list = prop::collection::vec(condition(), 0..4);
    let conditions = (mode, prop::option::weighted(0.98, list))
        .prop_map(|(mode, list)| Gate::If(Conditions::compile(mode, list.as_deref())));
    prop_oneof![
        40 => conditions,
        1 => Just(()).prop_map(|()| Gate::Always),
        1 => Just(()).prop_map(|()| Gate::Broken(Box::new(MatchError::NoEnabled))),
    ]
}

/// Conditions that nothing spoils: otherwise most lists would end at an error.
fn sound() -> impl Strategy<Value = Gate> {
    gate().prop_filter("can fail", |gate| match gate {
        Gate::If(conditions) => conditions.problem("").is_none(),
        Gate::Always => false,
        Gate::Broken(_) => false,
    })
}

#[derive(Clone, Debug)]
struct Request {
    method: &'static str,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    peer: [u8; 4],
    number: bool,
}

prop_compose! {
    fn request()(
        method in select(&["GET", "POST"][..]),
        path in pieces(PATH, 6),
        query in prop::option::of("((n[1-9]|x-a|text)(=([123]|%C3%A9|a\\+)?)?&){0,4}"),
        headers in prop::collection::vec((select(NAME), select(VALUE)), 0..4),
        last in 1u8..4,
        number in any::<bool>(),
    ) -> Request {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // Latin-1, as it comes over the wire.
            let bytes: Vec<u8> = value.chars().map(|c| c as u8).collect();
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_bytes(&bytes)) {
                map.append(name, value);
            }
        }
        Request { method, path, query, headers: map, peer: [10, 0, 0, last], number }
    }
}

impl ContextFields for Request {
    fn field(&self, name: &str) -> Field<'_> {
        match name {
            "text" => Field::Text(Cow::Borrowed("1")),
            "number" if self.number => Field::NotText,
            "startDateTime" => Field::NotText,
            _ => Field::Absent,
        }
    }
}

/// The place of the first entry that lets the request through, or why it cannot be told.
fn outcome(
    list: &Ordered<Entry>,
    found: Result<Option<&Entry>, &MatchError>,
) -> Result<Option<usize>, MatchError> {
    let place = |found: &Entry| list.entries().iter().position(|entry| std::ptr::eq(entry, found));
    found.map(|found| found.and_then(place)).map_err(Clone::clone)
}

fn indexed(gates: Vec<Gate>) -> Ordered<Entry> {
    Ordered::indexed(gates.into_iter().map(entry).collect(), 0)
}

fn check(list: &Ordered<Entry>, requests: &[Request]) -> Result<(), TestCaseError> {
    for request in requests {
        let view = || {
            let Request { method, path, query, headers, peer, .. } = request;
            RequestView::new(method, path, query.as_deref(), headers, (*peer).into()).with_context(request)
        };
        let plain = outcome(list, list.scan(&view()));
        prop_assert_eq!(outcome(list, list.first(&view())), plain, "{:?}", request);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_is_the_plain_scan(
        gates in prop::collection::vec(gate(), 0..24),
        requests in prop::collection::vec(request(), 1..8),
    ) {
        check(&indexed(gates), &requests)?;
    }

    #[test]
    fn crowded_places_are_the_plain_scan(
        gates in prop::collection::vec(sound(), 40..80),
        requests in prop::collection::vec(request(), 1..8),
    ) {
        check(&indexed(gates), &requests)?;
    }

    #[test]
    fn an_index_that_goes_on_after_changes_is_the_plain_scan(
        gates in prop::collection::vec(gate(), 16..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 1..8),
        requests in prop::collection::vec(request(), 1..8),
    ) {
        let mut list = indexed(gates);
        let mut changed = false;
        for (at, change) in changes {
            let mut entries = list.entries().to_vec();
            change.make(&mut entries, at);
            // Never anew, however many changed.
            let limits = Limits { many: 0, share: 1 };
            changed |= !entries.iter().zip(list.entries()).all(|(new, old)| new.has_gate_of(old));
            changed |= entries.len() != list.entries().len();
            list = Ordered::after_by(Some(&list), entries, limits);
            prop_assert_eq!(list.is_patched(), changed);
            check(&list, &requests)?;
        }
    }
}

/// A change among entries.
#[derive(Debug)]
enum Change {
    Replace(Gate),
    Insert(Gate),
    /// Made anew with the same conditions, and once more beside it.
    Renew {
        twice: bool,
    },
    Remove,
    Move(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        gate().prop_map(Change::Replace),
        gate().prop_map(Change::Insert),
        any::<bool>().prop_map(|twice| Change::Renew { twice }),
        Just(()).prop_map(|()| Change::Remove),
        any::<prop::sample::Index>().prop_map(Change::Move),
    ]
}

impl Change {
    fn make(self, entries: &mut Vec<Entry>, at: prop::sample::Index) {
        let at = at.index(entries.len());
        match self {
            Self::Replace(gate) => entries[at] = entry(gate),
            Self::Insert(gate) => entries.insert(at, entry(gate)),
            Self::Renew { twice } => {
                let renewed = || Entry { made: Arc::new(()), gate: Arc::clone(&entries[at].gate) };
                let (one, other) = (renewed(), renewed());
                entries[at] = one;
                if twice {
                    entries.insert(at, other);
                }
            }
            Self::Remove => drop(entries.remove(at)),
            Self::Move(to) => {
                let moved = entries.remove(at);
                entries.insert(to.index(entries.len() + 1), moved);
            }
        }
    }
}
