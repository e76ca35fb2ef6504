//! Rows in the order in which they came, found by id and by name.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// What the store keeps in a table.
pub trait Row: Clone {
    /// The opaque id.
    fn id(&self) -> &str;
    /// The unique name: of a selector or rule its name, of metadata its path.
    fn name(&self) -> &str;
}

/// One table; a clone shares the rows.
///
/// Invariant: every row is in `rows` under its place, and both indexes point at that place. Places only grow, so
/// their order is the order of insertion, which is the order in which gateways get the rows.
#[derive(Clone, Debug)]
pub struct Table<R> {
    rows: BTreeMap<u64, Arc<R>>,
    by_id: HashMap<String, u64>,
    by_name: HashMap<String, u64>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), by_id: HashMap::new(), by_name: HashMap::new() }
    }
}

impl<R: Row> Table<R> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<R>> {
        self.rows.values()
    }

    /// The rows in order, each with its place.
    pub fn places(&self) -> impl Iterator<Item = (u64, &Arc<R>)> {
        self.rows.iter().map(|(place, row)| (*place, row))
    }

    /// The row of an id.
    pub fn by_id(&self, id: &str) -> Option<&Arc<R>> {
        self.rows.get(self.by_id.get(id)?)
    }

    /// The row of a name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<R>> {
        self.rows.get(self.by_name.get(name)?)
    }

    /// The place of an id.
    pub fn place(&self, id: &str) -> Option<u64> {
        self.by_id.get(id).copied()
    }

    /// The row at a place.
    pub fn at(&self, place: u64) -> Option<&Arc<R>> {
        self.rows.get(&place)
    }

    /// Puts a row at a place, new or in place of the one that was there.
    pub fn put(&mut self, place: u64, row: R) {
        self.remove(place);
        self.by_id.insert(row.id().to_owned(), place);
        self.by_name.insert(row.name().to_owned(), place);
        self.rows.insert(place, Arc::new(row));
    }

    /// Takes the row away from its place.
    pub fn remove(&mut self, place: u64) -> Option<Arc<R>> {
        let row = self.rows.remove(&place)?;
        self.by_id.remove(row.id());
        if self.by_name.get(row.name()) == Some(&place) {
            self.by_name.remove(row.name());
        }
        Some(row)
    }

    /// Changes a row where it stands, for changes of neither id nor name; unlike `put` it leaves the indexes alone.
    pub fn edit(&mut self, place: u64, change: impl FnOnce(&mut R)) {
        if let Some(row) = self.rows.get_mut(&place) {
            change(Arc::make_mut(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Named(&'static str, &'static str);

    impl Row for Named {
        fn id(&self) -> &str {
            self.0
        }
        fn name(&self) -> &str {
            self.1
        }
    }

    #[test]
    fn replaced_row_keeps_its_place_and_loses_its_old_name() {
        let mut table = Table::default();
        table.put(1, Named("a", "first"));
        table.put(2, Named("b", "second"));
        table.put(1, Named("a", "renamed"));
        let names: Vec<_> = table.iter().map(|row| row.1).collect();
        assert_eq!(names, ["renamed", "second"]);
        assert!(table.by_name("first").is_none());
        assert_eq!(table.by_name("renamed").map(|row| row.0), Some("a"));
    }

    #[test]
    fn removed_row_is_found_by_nothing() {
        let mut table = Table::default();
        table.put(1, Named("a", "x"));
        assert!(table.remove(1).is_some());
        assert!(table.by_id("a").is_none() && table.by_name("x").is_none() && table.is_empty());
    }
}
