//! The rows as a disk keeps them.

use std::{collections::BTreeSet, error::Error, fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use super::{Row, Snowflake, Store, Table, UpstreamRow};

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// Plugins.
    Plugin,
    /// Selectors with their upstreams.
    Selector,
    /// Rules.
    Rule,
    /// Metadata.
    MetaData,
}

impl TableKind {
    /// Every table.
    pub const ALL: [Self; 4] = [Self::Plugin, Self::Selector, Self::Rule, Self::MetaData];

    /// The name on disk.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Selector => "selector",
            Self::Rule => "rule",
            Self::MetaData => "meta_data",
        }
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row that changed: its text, or none if it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The table.
    pub table: TableKind,
    /// The place in it.
    pub place: u64,
    /// JSON of the row.
    pub row: Option<Vec<u8>>,
}

/// One row as it was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedRow {
    /// The table.
    pub table: TableKind,
    /// The place in it.
    pub place: u64,
    /// JSON of the row.
    pub row: Vec<u8>,
}

/// A whole store as it was saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Number of the last change.
    pub revision: u64,
    /// The next free place.
    pub next_place: u64,
    /// Every row.
    pub rows: Vec<SavedRow>,
}

/// A saved row that cannot be read.
#[derive(Debug)]
pub struct DamagedRow {
    table: TableKind,
    place: u64,
    source: Option<serde_json::Error>,
}

impl fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {} of table `{}` ", self.place, self.table)?;
        f.write_str(if self.source.is_some() {
            "cannot be read"
        } else {
            "repeats the id or name of another"
        })
    }
}

impl Error for DamagedRow {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|error| error as _)
    }
}

impl Store {
    /// The rows that changed since this was last asked, to be saved together with the revision.
    pub fn take_changes(&mut self) -> Vec<RowChange> {
        std::mem::take(&mut self.unsaved)
            .into_iter()
            .map(|(table, place)| RowChange { table, place, row: self.row_text(table, place) })
            .collect()
    }

    /// The next free place, which is saved with the rows.
    #[must_use]
    pub fn next_place(&self) -> u64 {
        self.next_place
    }

    fn row_text(&self, table: TableKind, place: u64) -> Option<Vec<u8>> {
        match table {
            TableKind::Plugin => json(self.plugins.at(place)),
            TableKind::Selector => json(self.selectors.at(place)),
            TableKind::Rule => json(self.rules.at(place)),
            TableKind::MetaData => json(self.meta_data.at(place)),
        }
    }

    /// The store that was saved.
    ///
    /// # Errors
    /// For a row that is no row of its table, or that has the id or name of another.
    pub fn restore(saved: Saved, ids: Snowflake) -> Result<Self, DamagedRow> {
        let mut store = Self::empty(ids);
        for SavedRow { table, place, row } in saved.rows {
            match table {
                TableKind::Plugin => put(&mut store.plugins, table, place, &row)?,
                TableKind::Selector => put(&mut store.selectors, table, place, &row)?,
                TableKind::Rule => put(&mut store.rules, table, place, &row)?,
                TableKind::MetaData => put(&mut store.meta_data, table, place, &row)?,
            }
        }
        store.revision = saved.revision;
        store.next_place = saved.next_place;
        store.unsaved = BTreeSet::new();
        store.stamp_upstreams();
        Ok(store)
    }

    /// Gives every upstream its own incarnation, so that no verdict of an earlier process fits it.
    fn stamp_upstreams(&mut self) {
        let places: Vec<u64> = self.selectors.places().map(|(place, _)| place).collect();
        for place in places {
            let stamp = self.new_stamp();
            Arc::make_mut(&mut self.selectors).edit(place, |row| {
                for upstream in row.upstreams.iter_mut().flatten() {
                    let UpstreamRow { incarnation, touched, .. } = upstream;
                    (*incarnation, *touched) = (stamp, stamp);
                }
            });
        }
    }
}

fn json<R: Serialize>(row: Option<&Arc<R>>) -> Option<Vec<u8>> {
    // The rows are plain structs of texts, numbers and flags: writing them cannot fail.
    row.and_then(|row| serde_json::to_vec(&**row).ok())
}

fn put<R: Row + DeserializeOwned>(
    rows: &mut Arc<Table<R>>,
    table: TableKind,
    place: u64,
    text: &[u8],
) -> Result<(), DamagedRow> {
    let row: R = serde_json::from_slice(text).map_err(|e| DamagedRow { table, place, source: Some(e) })?;
    if rows.by_id(row.id()).is_some() || rows.by_name(row.name()).is_some() || rows.at(place).is_some() {
        return Err(DamagedRow { table, place, source: None });
    }
    Arc::make_mut(rows).put(place, row);
    Ok(())
}
