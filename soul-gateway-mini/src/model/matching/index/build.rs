//! Filing entries.

use std::collections::HashSet;

use super::{
    Index, List,
    bucket::{Bucket, Kind, Node},
    filing::{Filing, Filings, PathPlace, Place, Sought},
    key::{KeyMap, KeyTable},
};
use crate::slices;

/// Entries of one place that are tried one by one; more are told apart by their other conditions.
const CROWD: usize = 8;

/// Names of headers, and of parameters, that are looked up in a request one by one.
const MAX_NAMES: usize = 8;

/// Entries for which the map of places is made as large as it may become: to grow it means to move all that is in it, which
/// cannot be interrupted.
const MANY: usize = 10_000;

/// An entry to be filed.
#[derive(Clone, Copy)]
struct Entry<'f> {
    rank: u32,
    filings: &'f Filings,
    /// The filings that led to where it is, a bit each.
    used: u32,
}

impl<'f> Entry<'f> {
    fn filings(&self) -> impl Iterator<Item = (usize, &'f Filing)> {
        let used = self.used;
        self.filings.all().iter().enumerate().filter(move |(at, _)| used & (1 << at) == 0)
    }
}

impl Index {
    /// An index over entries in order; the first has rank 0.
    pub(crate) fn new<'f>(entries: impl Iterator<Item = &'f Filings>) -> Self {
        let entries = (0u32..).zip(entries).map(|(rank, filings)| Entry { rank, filings, used: 0 });
        Self::of(&entries.collect::<Vec<_>>())
    }

    fn of(entries: &[Entry<'_>]) -> Self {
        let counts = counts(entries);
        let mut builder = Builder::default();
        if entries.len() > MANY {
            builder.nodes.reserve(2 * entries.len());
        }
        let mut used = Vec::with_capacity(entries.len());
        for (at, entry) in (0u32..).zip(entries) {
            slices::step();
            match rarest(entry, &counts) {
                Some((filing, places)) => {
                    used.push(entry.used | 1 << filing);
                    places.iter().for_each(|place| builder.file(at, place));
                }
                None => {
                    used.push(entry.used);
                    builder.rest.push(entry.rank);
                }
            }
        }
        let with_used = |at: &u32| {
            entries.get(*at as usize).zip(used.get(*at as usize)).map(|(e, used)| Entry { used: *used, ..*e })
        };
        builder.finish(
            |members| list(&members.iter().filter_map(with_used).collect::<Vec<_>>()),
            |at| entries[at as usize].rank,
        )
    }
}

/// How many are filed under each place, as far as anyone has a choice.
fn counts(entries: &[Entry<'_>]) -> KeyMap<u32> {
    let mut counts = KeyMap::default();
    if entries.iter().any(|entry| entry.filings().nth(1).is_some()) {
        for (_, filing) in entries.iter().flat_map(Entry::filings) {
            slices::step();
            for place in filing {
                *counts.entry(place.key()).or_default() += 1;
            }
        }
    }
    counts
}

/// The filing whose most crowded place is the least crowded.
fn rarest<'f>(entry: &Entry<'f>, counts: &KeyMap<u32>) -> Option<(usize, &'f Filing)> {
    let crowd = |filing: &Filing| filing.iter().filter_map(|place| counts.get(&place.key())).max().copied();
    entry.filings().min_by_key(|(_, filing)| crowd(filing))
}

fn list(members: &[Entry<'_>]) -> List {
    slices::step();
    if members.len() > CROWD && members.iter().any(|member| member.filings().next().is_some()) {
        List::Split(Box::new(Index::of(members)))
    } else {
        List::Plain(members.iter().map(|member| member.rank).collect())
    }
}

/// An index that grows; its buckets hold places in the list of entries until it is finished.
#[derive(Default)]
struct Builder {
    nodes: KeyMap<Node>,
    values: KeyMap<Bucket>,
    sought: HashSet<Sought>,
    lists: Vec<Vec<u32>>,
    rest: Vec<u32>,
}

impl Builder {
    fn file(&mut self, at: u32, place: &Place) {
        match place {
            Place::Path(path) => self.file_path(at, path),
            Place::Value(sought, key) => {
                if !self.sought.contains(sought) {
                    self.sought.insert(sought.clone());
                }
                add(&mut self.lists, self.values.entry(*key).or_default(), at);
            }
        }
    }

    fn file_path(&mut self, at: u32, path: &PathPlace) {
        let mut node = self.nodes.entry(path.start).or_default();
        for link in &path.chain {
            node.lead_on(link.wild);
            node = self.nodes.entry(link.key).or_default();
        }
        add(&mut self.lists, if path.exact { &mut node.exact } else { &mut node.below }, at);
    }

    fn finish(self, list: impl Fn(&[u32]) -> List, rank: impl Fn(u32) -> u32) -> Index {
        let mut sought: Vec<_> = self.sought.into_iter().map(|sought| (sought.key(), sought)).collect();
        let mut too_many = |is_such: fn(&Sought) -> bool| {
            let many = sought.iter().filter(|(_, sought)| is_such(sought)).count() > MAX_NAMES;
            if many {
                sought.retain(|(_, sought)| !is_such(sought));
            }
            many
        };
        let every_header = too_many(|sought| matches!(sought, Sought::Header(_)));
        let every_query = too_many(|sought| matches!(sought, Sought::Query(_)));
        let (mut nodes, mut values) = (self.nodes, self.values);
        let ranked = |bucket: &mut Bucket| {
            if let Kind::One(at) = bucket.kind() {
                bucket.set(Kind::One(rank(at)));
            }
        };
        for node in nodes.values_mut() {
            slices::step();
            ranked(&mut node.exact);
            ranked(&mut node.below);
        }
        for bucket in values.values_mut() {
            slices::step();
            ranked(bucket);
        }
        Index {
            nodes: KeyTable::new(nodes.into_iter()),
            values: KeyTable::new(values.into_iter()),
            sought: sought.into_iter().map(|(key, sought)| (sought, key)).collect(),
            every_header,
            every_query,
            lists: self.lists.iter().map(|members| list(members)).collect(),
            rest: self.rest.into(),
        }
    }
}

/// Adds an entry to a bucket; entries come in ascending order, and one may come to the same place twice.
fn add(lists: &mut Vec<Vec<u32>>, bucket: &mut Bucket, at: u32) {
    match bucket.kind() {
        Kind::Empty => bucket.set(Kind::One(at)),
        Kind::One(other) if other != at => {
            // The place fits: there are fewer lists than entries.
            bucket.set(Kind::List(lists.len() as u32));
            lists.push(vec![other, at]);
        }
        Kind::One(_) => {}
        Kind::List(list) => {
            let list = &mut lists[list as usize];
            if list.last() != Some(&at) {
                list.push(at);
            }
        }
    }
}
