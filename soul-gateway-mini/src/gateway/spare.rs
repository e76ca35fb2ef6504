//! Header maps between two requests: making one takes two pieces of memory, which the next answer of the same lane can
//! have instead.

use std::cell::RefCell;

use http::HeaderMap;

/// How many are kept, and for how many headers at most.
const KEPT: usize = 32;
const ROOM: usize = 64;

thread_local! {
    /// The one used last on top, since it is the one that the processor still has at hand.
    static MAPS: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) };
}

/// An empty map, with room where one was given back before.
pub(super) fn map() -> HeaderMap {
    MAPS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Takes back a map whose headers nobody needs any more.
pub(super) fn give_back(mut map: HeaderMap) {
    if map.capacity() > ROOM {
        return;
    }
    map.clear();
    MAPS.with_borrow_mut(|maps| {
        if maps.len() < KEPT {
            maps.push(map);
        }
    });
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn what_is_given_back_is_empty_and_not_large() {
        let mut small = HeaderMap::new();
        small.insert("x-a", HeaderValue::from_static("1"));
        give_back(small);
        let again = map();
        assert!(again.is_empty() && again.capacity() > 0);

        give_back(HeaderMap::<HeaderValue>::with_capacity(ROOM + 1));
        assert_eq!(map().capacity(), 0);
        (0..KEPT + 1).for_each(|_| give_back(HeaderMap::new()));
        assert_eq!(MAPS.with_borrow(Vec::len), KEPT);
        let name = HeaderName::from_static("x-a");
        assert_eq!(map().get(name), None);
    }
}
