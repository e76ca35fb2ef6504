//! Addresses of upstreams that are configured by name.
//!
//! The system's resolver blocks a thread until it answers, and a request that stops waiting does not free it. So a name
//! is asked for once at a time, however many requests want it, and what was last known of it serves meanwhile: a
//! resolver that hangs costs one thread a name, and neither the upstream nor any other.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long an answer counts as new.
const FRESH: Duration = Duration::from_secs(5);

/// How long a new answer is waited for when an older one is known.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a name that nobody asks for is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

type Addresses = Arc<[SocketAddr]>;

/// What is known of every name.
#[derive(Debug)]
pub(in crate::gateway) struct Names {
    known: Mutex<HashMap<(Box<str>, u16), Name>>,
    lookups: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Name {
    asked: Instant,
    /// The last good answer and when it came.
    last: Option<(Instant, Addresses)>,
    /// The lookup under way.
    under_way: Option<watch::Receiver<Option<Result<Addresses, io::ErrorKind>>>>,
}

impl Names {
    /// `stop` ends lookups under way.
    pub(in crate::gateway) fn new(stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self { known: Mutex::default(), lookups: TaskTracker::new(), stop })
    }

    /// The addresses of a host, from `lookup` if they have to be asked for.
    ///
    /// # Errors
    /// What the resolver says, if nothing was known before.
    pub(super) async fn addresses<F>(
        self: &Arc<Self>,
        host: &str,
        port: u16,
        lookup: impl FnOnce() -> F,
    ) -> io::Result<Addresses>
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok([SocketAddr::new(address, port)].into());
        }
        let (mut answer, last) = {
            let mut known = self.lock();
            let name = known.entry((host.into(), port)).or_insert_with(|| Name {
                asked: Instant::now(),
                last: None,
                under_way: None,
            });
            name.asked = Instant::now();
            match &name.last {
                Some((at, addresses)) if at.elapsed() < FRESH => return Ok(Arc::clone(addresses)),
                _ => {}
            }
            let answer = name.under_way.get_or_insert_with(|| self.ask(host, port, lookup())).clone();
            (answer, name.last.as_ref().map(|(_, addresses)| Arc::clone(addresses)))
        };
        let answered = async {
            match answer.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Ok(addresses))) => Ok(Arc::clone(addresses)),
                Ok(Some(Err(kind))) => Err(io::Error::new(*kind, "the name cannot be resolved")),
                Ok(None) | Err(_) => Err(io::Error::other("the resolver was stopped")),
            }
        };
        match last {
            None => answered.await,
            Some(last) => Ok(timeout(PATIENCE, answered).await.ok().and_then(Result::ok).unwrap_or(last)),
        }
    }

    /// Starts a lookup, whose answer is also noted for those who come later.
    fn ask(
        self: &Arc<Self>,
        host: &str,
        port: u16,
        lookup: impl Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    ) -> watch::Receiver<Option<Result<Addresses, io::ErrorKind>>> {
        let (sender, receiver) = watch::channel(None);
        let (names, key) = (Arc::downgrade(self), (Box::<str>::from(host), port));
        let stop = self.stop.clone();
        self.lookups.spawn(stop.run_until_cancelled_owned(async move {
            let answer = match lookup.await {
                Ok(addresses) if addresses.is_empty() => Err(io::ErrorKind::NotFound),
                Ok(addresses) => Ok(Addresses::from(addresses)),
                Err(error) => Err(error.kind()),
            };
            if let Some(names) = names.upgrade() {
                names.note(&key, &answer);
            }
            sender.send_replace(Some(answer));
        }));
        receiver
    }

    /// Keeps what the resolver said of a name. One that fails is not asked again at once while an answer is known.
    fn note(&self, key: &(Box<str>, u16), answer: &Result<Addresses, io::ErrorKind>) {
        let mut known = self.lock();
        let Some(name) = known.get_mut(key) else { return };
        name.under_way = None;
        match (answer, &mut name.last) {
            (Ok(addresses), last) => *last = Some((Instant::now(), Arc::clone(addresses))),
            (Err(reason), Some((at, _))) => {
                *at = Instant::now();
                tracing::warn!(host = key.0, %reason, "the name of an upstream is not resolved, its last address serves");
            }
            // The request tells.
            (Err(_), None) => {}
        }
    }

    /// Forgets names that nobody asks for any more.
    pub(super) fn sweep(&self) {
        self.lock().retain(|_, name| name.asked.elapsed() < REMEMBERED);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Box<str>, u16), Name>> {
        // Nothing panics while it is held, and an entry is whole at any moment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use tokio::time::{advance, sleep};

    use super::*;

    fn at(last: u8) -> Vec<SocketAddr> {
        vec![SocketAddr::from(([10, 0, 0, last], 80))]
    }

    async fn unasked() -> io::Result<Vec<SocketAddr>> {
        panic!("the resolver is not asked")
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_asked_for_once_at_a_time_and_remembered_for_a_while() {
        let (names, asked) = (Names::new(CancellationToken::new()), Arc::new(AtomicUsize::new(0)));
        let lookup = || {
            let asked = Arc::clone(&asked);
            async move {
                asked.fetch_add(1, SeqCst);
                sleep(Duration::from_secs(1)).await;
                Ok(at(1))
            }
        };
        let (one, two) =
            tokio::join!(names.addresses("a.example", 80, lookup), names.addresses("a.example", 80, lookup));
        assert_eq!((&*one.unwrap(), &*two.unwrap()), (&*at(1), &*at(1)));
        assert_eq!(asked.load(SeqCst), 1);
        assert_eq!(&*names.addresses("a.example", 80, unasked).await.unwrap(), at(1));
        assert_eq!(&*names.addresses("10.0.0.7", 80, unasked).await.unwrap(), at(7), "it is no name");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_known_serves_while_the_resolver_fails_or_hangs() {
        let names = Names::new(CancellationToken::new());
        let failing = || async { Err(io::ErrorKind::NotFound.into()) };
        assert!(names.addresses("a.example", 80, failing).await.is_err(), "nothing was known");
        names.addresses("a.example", 80, || async { Ok(at(1)) }).await.unwrap();
        advance(FRESH).await;
        assert_eq!(&*names.addresses("a.example", 80, failing).await.unwrap(), at(1));
        assert_eq!(&*names.addresses("a.example", 80, unasked).await.unwrap(), at(1), "not again at once");

        advance(FRESH).await;
        let started = Instant::now();
        let mut hangs = 0;
        for _ in 0..100 {
            let hanging = || {
                hangs += 1;
                pending()
            };
            assert_eq!(&*names.addresses("a.example", 80, hanging).await.unwrap(), at(1));
        }
        assert_eq!((hangs, started.elapsed()), (1, PATIENCE * 100), "one lookup, and a short wait each");
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_answer_replaces_the_old_one_and_a_name_of_no_use_is_forgotten() {
        let names = Names::new(CancellationToken::new());
        names.addresses("a.example", 80, || async { Ok(at(1)) }).await.unwrap();
        advance(FRESH).await;
        assert_eq!(&*names.addresses("a.example", 80, || async { Ok(at(2)) }).await.unwrap(), at(2));
        advance(REMEMBERED).await;
        names.sweep();
        assert!(names.lock().is_empty());
    }
}
