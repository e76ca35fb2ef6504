//! A store in one file of a folder, by the embedded database `redb`.
//!
//! A commit is two transactions: the rows, then a mark. The database keeps its last two transactions and goes back
//! to the earlier if the later is unreadable; with the mark last, both hold the same rows, so going back
//! loses nothing that was answered. On top of the database's checksums each row carries one, and the state carries
//! the number of the rows and their checksums together: a row that is lost is found like one that is changed.
//!
//! A new file is made under another name and renamed when it is complete. A file of the right name was therefore
//! complete once: an empty, cut or foreign one is damage, never a new store.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
};

use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
};

use super::{
    Batch, Persist, PersistError,
    digest::{CHECKSUM_LEN, State, checksum},
};
use crate::{
    admin::store::{RowChange, Saved, SavedRow, TableKind},
    causes::chain,
};

/// The format this version writes; it reads no other so far.
const FORMAT: u32 = 1;
/// Name of the file inside the folder.
const FILE: &str = "admin.redb";
/// Name of a file that is being made.
const UNFINISHED: &str = "admin.redb.unfinished";
/// Name of the file whose lock says that a process uses the folder.
const LOCK: &str = "admin.lock";
/// Memory for pages; the rows are in the store's own memory anyway.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// Rows by table and place: checksum, then JSON.
const ROWS: TableDefinition<'_, (u8, u64), &[u8]> = TableDefinition::new("rows");
/// Format, state, mark.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Key of the format, a number of four bytes.
const FORMAT_KEY: &str = "format";
/// Key of the state.
const STATE_KEY: &str = "state";
/// Key of the mark, the revision again.
const MARK_KEY: &str = "mark";

/// An open store.
pub(crate) struct Embedded {
    path: PathBuf,
    /// Held as long as the store is open; the system lets go of it when the process ends in any way.
    _lock: File,
    /// Absent after a failed commit: the database then wants to be opened anew.
    open: Option<Open>,
    /// What was read when the store was opened, for the first `load`.
    read: Option<Saved>,
}

/// The database, and the state as it was last committed.
struct Open {
    database: Database,
    state: State,
}

impl Embedded {
    /// Opens the store of a folder, or makes folder and store.
    ///
    /// # Errors
    /// See [`PersistError`]; a store that is there is never replaced.
    pub(crate) fn open(folder: &Path) -> Result<Self, PersistError> {
        fs::create_dir_all(folder).map_err(|source| unusable(folder, source))?;
        let lock = lock(folder)?;
        let path = folder.join(FILE);
        if !path.try_exists().map_err(|source| unusable(&path, source))? {
            create(folder, &path)?;
        }
        let (open, saved) = open(&path)?;
        Ok(Self { path, _lock: lock, open: Some(open), read: Some(saved) })
    }
}

impl Persist for Embedded {
    fn load(&mut self) -> Result<Option<Saved>, PersistError> {
        let saved = match self.read.take() {
            Some(saved) => saved,
            None => {
                self.open = None; // closes it: the file can be open once
                let (open, saved) = open(&self.path)?;
                self.open = Some(open);
                saved
            }
        };
        Ok((saved != Saved::default()).then_some(saved))
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), PersistError> {
        self.read = None;
        // A database that failed once is closed. Only `load` opens it again, because only it can say what is durable.
        let write = |why: String| PersistError::Write { path: self.path.clone(), why };
        let Some(mut open) = self.open.take() else {
            return Err(write("an earlier write failed".to_owned()));
        };
        open.state = commit(&open, batch).map_err(|e| write(chain(&e)))?;
        self.open = Some(open);
        Ok(())
    }
}

/// Takes the lock of a folder.
fn lock(folder: &Path) -> Result<File, PersistError> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|source| unusable(&path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PersistError::Locked { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(unusable(&path, source)),
    }
}

/// Makes an empty store and gives it its name when it is complete.
fn create(folder: &Path, path: &Path) -> Result<(), PersistError> {
    let unfinished = folder.join(UNFINISHED);
    match fs::remove_file(&unfinished) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(unusable(&unfinished, source)),
        _ => {}
    }
    let write = |why: String| PersistError::Write { path: unfinished.clone(), why };
    let database = builder().create(&unfinished).map_err(|e| write(chain(&e)))?;
    let empty = Open { database, state: State::default() };
    commit(&empty, &Batch::default()).map_err(|e| write(chain(&e)))?;
    empty.database.close().map_err(|e| write(chain(&e)))?;
    sync(&unfinished).map_err(|source| unusable(&unfinished, source))?;
    fs::rename(&unfinished, path).map_err(|source| unusable(path, source))?;
    sync(folder).map_err(|source| unusable(folder, source))
}

/// Makes a file, or the names in a folder, durable.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    builder
}

/// Opens and reads a store that was complete once. On a thread of its own, because a damaged file can make the
/// database panic, and a panic there is damage like any other.
fn open(path: &Path) -> Result<(Open, Saved), PersistError> {
    let damaged = |why: String| PersistError::Damaged { path: path.to_owned(), why };
    let reader = {
        let path = path.to_owned();
        thread::Builder::new().name("soul-admin-open".to_owned()).spawn(move || open_and_read(&path))
    };
    let reader = reader.map_err(|source| unusable(path, source))?;
    reader.join().unwrap_or_else(|_| Err(damaged("the database gave up on it".to_owned())))
}

fn open_and_read(path: &Path) -> Result<(Open, Saved), PersistError> {
    let damaged = |why: String| PersistError::Damaged { path: path.to_owned(), why };
    let length = fs::metadata(path).map_err(|source| unusable(path, source))?.len();
    if length == 0 {
        return Err(damaged("the file is empty".to_owned()));
    }
    let database = builder().open(path).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => {
            PersistError::Locked { folder: path.parent().unwrap_or(path).to_owned() }
        }
        DatabaseError::Storage(StorageError::Io(source)) if is_access(&source) => unusable(path, source),
        other => damaged(chain(&other)),
    })?;
    let (state, saved) = read(&database, path)?;
    Ok((Open { database, state }, saved))
}

/// Whether an error is about getting at the file rather than about what is in it.
fn is_access(error: &io::Error) -> bool {
    // What the system refused, for example for want of descriptors, says nothing about the content; only an offset
    // that it finds senseless came out of the file. What the database itself finds wrong has no number.
    error.raw_os_error().is_some() && error.kind() != io::ErrorKind::InvalidInput
}

/// Reads everything and compares it with its checksums.
fn read(database: &Database, path: &Path) -> Result<(State, Saved), PersistError> {
    let damaged = |why: String| PersistError::Damaged { path: path.to_owned(), why };
    let bad = |e: redb::Error| damaged(chain(&e));
    let transaction = database.begin_read().map_err(|e| bad(e.into()))?;
    let meta = transaction.open_table(META).map_err(|e| bad(e.into()))?;
    let value = |key| meta.get(key).map_err(|e| bad(e.into())).map(|guard| guard.map(|g| g.value().to_vec()));

    let format = value(FORMAT_KEY)?.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    match format {
        Some(FORMAT) => {}
        Some(found) if found > FORMAT => {
            return Err(PersistError::NewerFormat { path: path.to_owned(), found, known: FORMAT });
        }
        other => return Err(damaged(format!("its format is {other:?}"))),
    }
    let state = value(STATE_KEY)?.and_then(|bytes| State::from_bytes(&bytes));
    let state = state.ok_or_else(|| damaged("its state does not fit its checksum".to_owned()))?;

    let mut saved = Saved { revision: state.revision, next_place: state.next_place, rows: Vec::new() };
    let mut found = State { tables: State::default().tables, ..state };
    for entry in transaction.open_table(ROWS).map_err(|e| bad(e.into()))?.iter().map_err(|e| bad(e.into()))? {
        let (key, value) = entry.map_err(|e| bad(e.into()))?;
        let ((table, place), bytes) = (key.value(), value.value());
        let kind = usize::from(table);
        let row = row_of(table, place, bytes).zip(TableKind::ALL.get(kind)).zip(found.tables.get_mut(kind));
        let Some((((sum, text), kind), digest)) = row else {
            return Err(damaged(format!("row {place} of table {table} does not fit its checksum")));
        };
        digest.add(sum);
        saved.rows.push(SavedRow { table: *kind, place, row: text.to_vec() });
    }
    if found != state {
        return Err(damaged("rows are missing or too many".to_owned()));
    }
    Ok((state, saved))
}

/// Writes a batch and the mark behind it; returns the state that is durable then.
fn commit(open: &Open, batch: &Batch) -> Result<State, redb::Error> {
    let mut state = State { revision: batch.revision, next_place: batch.next_place, ..open.state };
    let transaction = open.database.begin_write()?;
    {
        let mut rows = transaction.open_table(ROWS)?;
        for RowChange { table, place, row } in &batch.changes {
            let digest = &mut state.tables[*table as usize];
            let key = (*table as u8, *place);
            let old = match row {
                Some(text) => {
                    let sum = row_checksum(key.0, key.1, text);
                    digest.add(sum);
                    let bytes = [sum.as_slice(), text].concat();
                    rows.insert(key, bytes.as_slice())?.map(|old| old.value().to_vec())
                }
                None => rows.remove(key)?.map(|old| old.value().to_vec()),
            };
            if let Some((sum, _)) = old.as_deref().and_then(<[u8]>::split_first_chunk) {
                digest.remove(*sum);
            }
        }
        let mut meta = transaction.open_table(META)?;
        meta.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
        meta.insert(STATE_KEY, state.to_bytes().as_slice())?;
    }
    transaction.commit()?;
    mark(&open.database, batch.revision)?;
    Ok(state)
}

/// The transaction that makes the one before it safe.
fn mark(database: &Database, revision: u64) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(META)?.insert(MARK_KEY, revision.to_le_bytes().as_slice())?;
    transaction.commit()?;
    Ok(())
}

/// Checksum and text of a row, if they fit.
fn row_of(table: u8, place: u64, bytes: &[u8]) -> Option<([u8; CHECKSUM_LEN], &[u8])> {
    let (sum, text) = bytes.split_first_chunk()?;
    (row_checksum(table, place, text) == *sum).then_some((*sum, text))
}

fn row_checksum(table: u8, place: u64, text: &[u8]) -> [u8; CHECKSUM_LEN] {
    checksum(&[&[table], &place.to_le_bytes(), text])
}

fn unusable(path: &Path, source: io::Error) -> PersistError {
    PersistError::Unusable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
