//! Which entries of an ordered list a request could match at all.
//!
//! The plain way to the first entry that matches is to try them in order. The index is a filter before that: it
//! names the entries whose conditions could hold, and each of them is then judged in full. So it never decides,
//! and a wrong guess, for example two texts with one key, costs time and changes nothing. What it promises is
//! one thing: **an entry it does not name is one whose conditions are false for the request, and no error.**
//!
//! # How an entry is filed
//! Each condition that allows it says under which [`Place`]s the entry can be found: a `uri` pattern by the
//! segments it begins with (`/a/{id}/b` as *a, any, b*; `/a/**` as *a and below*), an equality by source and
//! value. Of a list joined by *and* one condition is enough, the one whose places are shared with the fewest;
//! of a list joined by *or* it takes all. Entries that crowd one place are told apart by their other conditions
//! in an index of their own. What has no such condition (`like`, most `regEx`, anything that can fail) is tried
//! for every request, in order with the others.
//!
//! # How a request finds them
//! Down its own path, one look into a map for each segment and kind of step, and once for each header, parameter
//! or address that some entry asks for. Nothing is allocated, and the lists that come of it are tried only up to
//! the best match so far.

mod bucket;
mod build;
mod filing;
mod key;

pub(crate) use filing::{Filing, Filings, PathPlaces, Place, Sought};
pub(crate) use key::{long, short};

use self::{
    bucket::{Bucket, Kind, Node},
    filing::{segments, start},
    key::{Key, KeyTable},
};
use super::view::RequestView;

/// An index over entries that are known by their rank, the place in their order.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Every beginning of a path that leads to an entry.
    nodes: KeyTable<Node>,
    values: KeyTable<Bucket>,
    /// What is looked up in `values`, each with its own key.
    sought: Box<[(Sought, Key)]>,
    /// Whether all headers of a request are looked up: it has fewer than the entries name.
    every_header: bool,
    /// The same for query parameters.
    every_query: bool,
    lists: Box<[List]>,
    /// Entries that no place leads to.
    rest: Box<[u32]>,
}

/// Several entries of one place.
#[derive(Debug)]
enum List {
    /// Ranks, ascending.
    Plain(Box<[u32]>),
    /// Too many to try one by one.
    Split(Box<Index>),
}

impl Index {
    /// The lowest rank for which `hit` is true, if it is true for none that the index leaves out.
    ///
    /// `hit` is asked for ever lower ranks once it said yes.
    pub(crate) fn first(&self, view: &RequestView<'_>, hit: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut search = Search { view, best: None, hit };
        search.index(self);
        search.best
    }
}

struct Search<'v, 'r, F> {
    view: &'v RequestView<'r>,
    best: Option<u32>,
    hit: F,
}

impl<F: FnMut(u32) -> bool> Search<'_, '_, F> {
    fn index(&mut self, index: &Index) {
        if !index.nodes.is_empty() {
            let path = self.view.path();
            self.node(index, start(path), segments(path));
        }
        if !index.values.is_empty() {
            self.values(index);
        }
        self.ranks(&index.rest);
    }

    /// Both ways on from a beginning of the path, then the entries for all below it.
    fn node<'p>(&mut self, index: &Index, key: Key, mut rest: impl Iterator<Item = &'p [u8]> + Clone) {
        let Some(node) = index.nodes.get(key) else { return };
        if !node.is_end() {
            match rest.next() {
                None => self.bucket(index, node.exact),
                Some(segment) => {
                    if node.has_literal() {
                        self.node(index, key.then(segment), rest.clone());
                    }
                    if node.has_wild() {
                        self.node(index, key.any(), rest);
                    }
                }
            }
        }
        self.bucket(index, node.below);
    }

    fn values(&mut self, index: &Index) {
        let view = self.view;
        for (sought, key) in &index.sought {
            if let Some(key) = sought.value_key(*key, view) {
                self.value(index, key);
            }
        }
        if index.every_header {
            for (name, text) in view.headers() {
                self.value(index, Sought::header_key(name.as_str()).then(&*text));
            }
        }
        if index.every_query {
            for (name, text) in view.query_pairs() {
                self.value(index, Sought::query_key(&name).then(&*text));
            }
        }
    }

    fn value(&mut self, index: &Index, key: Key) {
        if let Some(bucket) = index.values.get(key) {
            self.bucket(index, bucket);
        }
    }

    fn bucket(&mut self, index: &Index, bucket: Bucket) {
        match bucket.kind() {
            Kind::Empty => {}
            Kind::One(rank) => self.ranks(&[rank]),
            Kind::List(list) => match index.lists.get(list as usize) {
                Some(List::Plain(ranks)) => self.ranks(ranks),
                Some(List::Split(index)) => self.index(index),
                None => {}
            },
        }
    }

    fn ranks(&mut self, ranks: &[u32]) {
        for rank in ranks {
            if self.best.is_some_and(|best| *rank >= best) {
                return;
            }
            if (self.hit)(*rank) {
                self.best = Some(*rank);
                return;
            }
        }
    }
}
