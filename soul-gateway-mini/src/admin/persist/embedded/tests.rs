use std::collections::BTreeSet;

use super::*;

fn row(table: TableKind, place: u64, text: &str) -> RowChange {
    RowChange { table, place, row: Some(text.as_bytes().to_vec()) }
}

/// A store of some size, written by several commits, one of which deletes.
fn filled(folder: &Path) -> Saved {
    let mut store = Embedded::open(folder).unwrap();
    assert_eq!(store.load().unwrap(), None);
    for revision in 1..=6 {
        let changes = (0..20)
            .map(|n| {
                row(TableKind::Rule, revision * 100 + n, &format!("{{\"name\":\"/rule/{revision}/{n}\"}}"))
            })
            .chain([row(TableKind::Selector, 1, &format!("{{\"revision\":{revision}}}"))])
            .chain((revision == 5).then_some(RowChange { table: TableKind::Rule, place: 100, row: None }))
            .collect();
        store.commit(&Batch { revision, next_place: 1000 + revision, changes }).unwrap();
    }
    store.load().unwrap().unwrap()
}

#[test]
fn what_was_committed_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let saved = filled(folder.path());
    assert_eq!((saved.revision, saved.next_place), (6, 1006));
    assert_eq!(saved.rows.len(), 6 * 20 + 1 - 1);
    assert!(saved.rows.iter().any(|row| row.row == b"{\"revision\":6}"));
    assert_eq!(Embedded::open(folder.path()).unwrap().load().unwrap(), Some(saved));
}

#[test]
fn a_new_store_is_complete_before_it_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(UNFINISHED), "left over").unwrap();
    let mut store = Embedded::open(folder.path()).unwrap();
    assert_eq!(store.load().unwrap(), None);
    assert!(!folder.path().join(UNFINISHED).exists());
}

#[test]
fn second_user_of_a_folder_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let first = Embedded::open(folder.path()).unwrap();
    assert!(matches!(Embedded::open(folder.path()), Err(PersistError::Locked { .. })));
    drop(first);
    Embedded::open(folder.path()).unwrap();
}

#[test]
fn later_format_is_named() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let database = Database::open(folder.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert(FORMAT_KEY, 7_u32.to_le_bytes().as_slice()).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = Embedded::open(folder.path()).err().unwrap();
    assert!(matches!(error, PersistError::NewerFormat { found: 7, known: FORMAT, .. }), "{error}");
}

#[test]
fn lost_row_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let database = Database::open(folder.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(ROWS).unwrap().remove((TableKind::Rule as u8, 203)).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert_damaged(folder.path(), "lost row");
}

#[test]
fn unusable_folder_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Embedded::open(&file), Err(PersistError::Unusable { .. })));
}

fn assert_damaged(folder: &Path, what: &str) {
    let file = folder.join(FILE);
    let before = fs::read(&file).unwrap();
    let error = Embedded::open(folder).err().unwrap_or_else(|| panic!("{what}: opened"));
    let text = error.to_string();
    assert!(matches!(error, PersistError::Damaged { .. }), "{what}: {text}");
    assert!(text.contains(&file.display().to_string()) && text.contains("move it away"), "{what}: {text}");
    let after = fs::read(&file).unwrap();
    assert!(after.len() >= before.len().min(1), "{what}: the file was emptied");
}

#[test]
fn empty_and_foreign_files_are_damage() {
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("one byte", vec![0]),
        ("text", b"this is not a store".to_vec()),
        ("zeros", vec![0; 1 << 20]),
        ("noise", (0..1_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), &bytes).unwrap();
        assert_damaged(folder.path(), what);
        assert_eq!(fs::read(folder.path().join(FILE)).unwrap(), bytes, "{what}: the file was changed");
    }
}

/// Writes a damaged copy into a folder and opens it: it is either reported, or all of it is there.
fn never_a_wrong_store(folder: &Path, bytes: &[u8], saved: &Saved, what: &str) -> bool {
    fs::write(folder.join(FILE), bytes).unwrap();
    match Embedded::open(folder).and_then(|mut store| store.load()) {
        Ok(found) => {
            assert_eq!(found.as_ref(), Some(saved), "{what}: another store than was written");
            false
        }
        Err(PersistError::Damaged { .. } | PersistError::NewerFormat { .. }) => true,
        Err(other) => panic!("{what}: {other}"),
    }
}

#[test]
fn cut_store_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let saved = filled(folder.path());
    let bytes = fs::read(folder.path().join(FILE)).unwrap();
    let lengths: BTreeSet<usize> =
        (0..64).map(|n| n * bytes.len() / 64).chain([1, 63, 64, 320, 4095, 4096, bytes.len() - 1]).collect();
    for length in lengths {
        let reported =
            never_a_wrong_store(folder.path(), &bytes[..length], &saved, &format!("cut to {length}"));
        assert!(reported, "cut to {length} of {}: not reported", bytes.len());
    }
}

#[test]
fn overwritten_and_overlong_files_never_give_another_store() {
    const PAGE: usize = 4096;
    let folder = tempfile::tempdir().unwrap();
    let saved = filled(folder.path());
    let bytes = fs::read(folder.path().join(FILE)).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    for page in 0..=used / PAGE {
        let mut damaged = bytes.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0);
        never_a_wrong_store(folder.path(), &damaged, &saved, &format!("page {page} of zeros"));
        let mut swapped = bytes.clone();
        swapped.copy_within(PAGE..2 * PAGE, page * PAGE);
        never_a_wrong_store(folder.path(), &swapped, &saved, &format!("page {page} as page 1"));
    }
    let longer = [bytes.as_slice(), b"more"].concat();
    never_a_wrong_store(folder.path(), &longer, &saved, "four bytes more");
}

#[test]
fn flipped_bits_never_give_another_store() {
    let folder = tempfile::tempdir().unwrap();
    let saved = filled(folder.path());
    let bytes = fs::read(folder.path().join(FILE)).unwrap();
    // Every byte of the header, then a sample of the rest, most of which is unused pages.
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let places = (0..320).chain((320..=used).step_by(701));
    let mut reported = 0;
    for at in places {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        reported += usize::from(never_a_wrong_store(folder.path(), &damaged, &saved, &format!("byte {at}")));
    }
    assert!(reported > 100, "only {reported} flips were noticed");
}

#[test]
fn damage_after_a_crash_never_gives_another_store() {
    let folder = tempfile::tempdir().unwrap();
    let saved = filled(folder.path());
    // The file as a killed process leaves it: open, not closed.
    let mut store = Embedded::open(folder.path()).unwrap();
    store
        .commit(&Batch { revision: 7, next_place: 2000, changes: vec![row(TableKind::Rule, 1500, "{}")] })
        .unwrap();
    let bytes = fs::read(folder.path().join(FILE)).unwrap();
    let saved = Saved {
        revision: 7,
        next_place: 2000,
        rows: saved
            .rows
            .into_iter()
            .chain([SavedRow { table: TableKind::Rule, place: 1500, row: b"{}".to_vec() }])
            .collect(),
    };
    drop(store);
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    assert!(!never_a_wrong_store(folder.path(), &bytes, &saved, "undamaged"), "a crash alone is no damage");
    for at in (0..320).chain((320..=used).step_by(701)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        never_a_wrong_store(folder.path(), &damaged, &saved, &format!("byte {at}"));
    }
}
