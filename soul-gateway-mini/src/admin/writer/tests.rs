use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::admin::{
    persist::Memory,
    store::{Edit, PluginPatch, RowChange, Saved, SavedRow},
};

/// A disk in memory that fails when told to.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<DiskState>>);

#[derive(Default)]
struct DiskState {
    saved: Saved,
    /// What the next commits do, then they succeed.
    next: Vec<Fault>,
    /// Whether it can be read.
    gone: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Nothing is written.
    Lost,
    /// All is written, yet the commit fails.
    Late,
    /// The disk's library gives up.
    Panic,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn broken() -> PersistError {
    PersistError::Write { path: "disk".into(), why: "no space".to_owned() }
}

impl Persist for Disk {
    fn load(&mut self) -> Result<Option<Saved>, PersistError> {
        let state = self.state();
        if state.gone {
            Err(broken())
        } else {
            Ok((state.saved != Saved::default()).then(|| state.saved.clone()))
        }
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), PersistError> {
        let mut state = self.state();
        let fault = state.next.pop();
        assert!(fault != Some(Fault::Panic), "the disk's library gave up");
        if fault == Some(Fault::Lost) || state.gone {
            return Err(broken());
        }
        for RowChange { table, place, row } in &batch.changes {
            let rows = &mut state.saved.rows;
            rows.retain(|known| (known.table, known.place) != (*table, *place));
            if let Some(row) = row {
                rows.push(SavedRow { table: *table, place: *place, row: row.clone() });
            }
        }
        (state.saved.revision, state.saved.next_place) = (batch.revision, batch.next_place);
        if fault == Some(Fault::Late) { Err(broken()) } else { Ok(()) }
    }
}

struct Running {
    handle: StoreHandle,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn run(persist: Box<dyn Persist>) -> Running {
    let metrics = Arc::new(Metrics::new());
    let (handle, writer) = open(persist, Snowflake::new(1, 1), Clock::system(), metrics).unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(writer.run(stop.clone()));
    Running { handle, stop, task }
}

fn enable(plugin: &str, enabled: bool) -> Command {
    Command::Edit(Edit::Plugin(plugin.to_owned(), PluginPatch { enabled: Some(enabled), config: None }))
}

fn is_enabled(handle: &StoreHandle, plugin: &str) -> bool {
    handle.store().plugins().by_id(plugin).unwrap().enabled.unwrap()
}

#[tokio::test]
async fn answered_change_is_published_and_durable() {
    let disk = Disk::default();
    let running = run(Box::new(disk.clone()));
    let mut image = running.handle.image();
    image.mark_unchanged();
    let applied = running.handle.submit(enable("1", true)).await.unwrap();
    assert!(matches!(applied.outcome, Outcome::Changed { revision: 1, .. }));
    assert_eq!(disk.state().saved.revision, 1);
    assert!(image.has_changed().unwrap() && image.borrow().revision == 1);
    assert!(is_enabled(&running.handle, "1"));

    running.stop.cancel();
    running.task.await.unwrap();
    let again = run(Box::new(disk));
    assert!(is_enabled(&again.handle, "1"));
}

#[tokio::test]
async fn lost_commit_changes_nothing_and_the_next_one_works() {
    let disk = Disk::default();
    let running = run(Box::new(disk.clone()));
    disk.state().next.push(Fault::Lost);
    let error = running.handle.submit(enable("1", true)).await.unwrap_err();
    assert!(matches!(error, SubmitError::NotDurable(_)), "{error}");
    assert!(!is_enabled(&running.handle, "1"));
    assert_eq!(running.handle.image().borrow().revision, 0);
    assert!(running.handle.trouble().is_some());

    running.handle.submit(enable("2", true)).await.unwrap();
    assert!(running.handle.trouble().is_none());
    assert!(!is_enabled(&running.handle, "1") && is_enabled(&running.handle, "2"));
}

#[tokio::test]
async fn commit_that_reached_the_disk_late_is_taken_from_there() {
    let disk = Disk::default();
    let running = run(Box::new(disk.clone()));
    disk.state().next.push(Fault::Late);
    running.handle.submit(enable("1", true)).await.unwrap_err();
    running.handle.submit(enable("2", true)).await.unwrap();
    assert!(is_enabled(&running.handle, "1") && is_enabled(&running.handle, "2"));
    assert_eq!(running.handle.image().borrow().revision, disk.state().saved.revision);
}

#[tokio::test(start_paused = true)]
async fn disk_that_comes_back_is_found_without_a_change() {
    let disk = Disk::default();
    let running = run(Box::new(disk.clone()));
    disk.state().gone = true;
    running.handle.submit(enable("1", true)).await.unwrap_err();
    running.handle.submit(enable("1", true)).await.unwrap_err();
    assert!(running.handle.trouble().is_some());
    disk.state().gone = false;
    let mut trouble = running.handle.trouble.clone();
    trouble.wait_for(Option::is_none).await.unwrap();
    running.handle.submit(enable("1", true)).await.unwrap();
}

#[tokio::test]
async fn panic_of_the_disk_s_library_is_an_error_answer() {
    let disk = Disk::default();
    let running = run(Box::new(disk.clone()));
    disk.state().next.push(Fault::Panic);
    assert!(matches!(running.handle.submit(enable("1", true)).await, Err(SubmitError::Stopped)));
    running.handle.submit(enable("2", true)).await.unwrap();
    assert!(!is_enabled(&running.handle, "1") && is_enabled(&running.handle, "2"));
}

#[tokio::test]
async fn batch_is_answered_each_for_itself() {
    let running = run(Box::new(Memory));
    let (one, two, three) = tokio::join!(
        running.handle.submit(enable("1", true)),
        running.handle.submit(enable("none", true)),
        running.handle.submit_at(enable("2", true), Some(77)),
    );
    assert!(one.is_ok());
    assert!(matches!(two, Err(SubmitError::Rejected(Rejected::NotFound { .. }))));
    assert!(matches!(three, Err(SubmitError::Rejected(Rejected::Stale { expected: 77, .. }))));
    assert!(!is_enabled(&running.handle, "2"));
}

#[tokio::test]
async fn queue_is_emptied_before_the_end() {
    let disk = Disk::default();
    let running = run(Box::new(disk.clone()));
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..200 {
        let (handle, done) = (running.handle.clone(), Arc::clone(&done));
        tasks.spawn(async move {
            let patch = PluginPatch { enabled: None, config: Some(format!("{at}")) };
            if handle.submit(Command::Edit(Edit::Plugin("1".to_owned(), patch))).await.is_ok() {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    tokio::task::yield_now().await;
    running.stop.cancel();
    tasks.join_all().await;
    running.task.await.unwrap();
    // Whatever was answered as done is on disk: one revision each.
    assert_eq!(disk.state().saved.revision as usize, done.load(Ordering::Relaxed));
    assert!(matches!(running.handle.submit(enable("1", true)).await, Err(SubmitError::Stopped)));
}
