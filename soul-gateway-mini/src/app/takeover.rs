//! A gateway takes over from another on the same machine, and no connection is lost.
//!
//! The one that runs listens at a socket file. The one that starts connects to it and is given the listening sockets themselves,
//! not others at the same address: connections that wait in them wait on for whoever accepts next. Once it serves, it says so; then the
//! other ends as at SIGTERM, and this one listens at the file. Until then the other serves on, and if this one ends
//! before, that is all there was to it. One at a time takes over: of two that start together, the second takes over from
//! the first, so that in the end one is left. What they say to each other is in `wire`.

mod wire;

use std::{
    fs,
    io::{self, Write as _},
    os::unix::{
        fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _},
        net,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    net::{SendFlags, send},
    process::geteuid,
};
use tokio::{
    io::AsyncReadExt as _,
    net::{UnixListener, UnixStream},
    task::{JoinSet, spawn_blocking},
};
use tracing::{info, warn};

use crate::gateway::Sockets;

/// How long either side waits for the other to say what it has ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often one that waits for its turn looks whether it has come.
const TURN_EVERY: Duration = Duration::from_millis(50);

/// Held by the one gateway that takes over, until it can be taken over from. Given back by the system if it ends before.
#[derive(Debug)]
pub(super) struct Turn {
    _locked: fs::File,
}

impl Turn {
    /// Waits until no other gateway is about to take over by `path`, however long that takes.
    ///
    /// # Errors
    /// When the file beside it, `.lock`, cannot be made or locked.
    pub(super) async fn take(path: &Path) -> io::Result<Self> {
        let beside = beside(path, "lock");
        let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&beside)?;
        let mut told = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _locked: file }),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            if !told {
                info!(file = %beside.display(), "another gateway is about to serve, wait to take over from it");
                told = true;
            }
            tokio::time::sleep(TURN_EVERY).await;
        }
    }
}

fn beside(path: &Path, ending: impl std::fmt::Display) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{ending}"));
    PathBuf::from(beside)
}

/// The gateway that ran before, while this one starts. It serves on unless it is told that this one is ready.
#[derive(Debug)]
pub(super) struct Predecessor(net::UnixStream);

/// Asks whoever listens at `path` for its sockets; `None` if nobody does.
///
/// # Errors
/// When somebody does, and gives none: another start would not find the ports free either.
pub(super) async fn ask(path: &Path) -> io::Result<Option<(Sockets, Predecessor)>> {
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        // Not there yet, or left behind by one that has ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return if fs::metadata(path)?.file_type().is_socket() { Ok(None) } else { Err(no_socket()) };
        }
        Err(error) => return Err(error),
    };
    if !is_trusted(uid(&stream)?) {
        return Err(wire::stranger());
    }
    let stream = stream.into_std()?;
    spawn_blocking(move || {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let sockets = wire::receive(&stream).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => silent(),
            io::ErrorKind::UnexpectedEof => ended(),
            _ => error,
        })?;
        Ok(Some((sockets, Predecessor(stream))))
    })
    .await
    .map_err(io::Error::other)?
}

/// The user of the other process.
fn uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(stream.peer_cred()?.uid())
}

/// Whether sockets are given to processes of this user, and taken from them: to those that could end this one by a signal as well.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

impl Predecessor {
    /// Tells it that it may end.
    ///
    /// # Errors
    /// When it has ended already.
    pub(super) fn relieve(mut self) -> io::Result<()> {
        self.0.write_all(&[wire::READY])
    }
}

/// Where the gateway after this one asks.
#[derive(Debug)]
pub(super) struct Successors {
    listener: UnixListener,
    path: PathBuf,
}

impl Successors {
    /// Listens at `path` instead of whoever did before. Only this user may connect there.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(super) fn listen(path: &Path) -> io::Result<Self> {
        // Elsewhere first, so that at any time somebody is behind the right name; and where nobody else gets in, since a
        // socket that is just made has whatever rights the process gives to its files.
        let folder = Private::make(beside(path, std::process::id()))?;
        let first = folder.0.join("s");
        let listener = UnixListener::bind(&first)?;
        fs::set_permissions(&first, fs::Permissions::from_mode(0o600))?;
        fs::rename(&first, path)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Gives the sockets to every gateway that asks, and returns once one of them is ready. Of each that has them no more, as it
    /// ended before, `take_back` is told.
    pub(super) async fn relieved(&self, sockets: impl Fn() -> io::Result<Sockets>, take_back: impl Fn()) {
        let mut asking = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted.and_then(|(stream, _)| {
                    refuse_strangers(&stream)?;
                    Ok((stream, sockets()?))
                }) {
                    Ok((stream, sockets)) => drop(asking.spawn(relieved_by(stream, sockets))),
                    Err(error) => {
                        warn!(%error, file = %self.path.display(), "another gateway asked for the ports in vain");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                Some(ended) = asking.join_next() => match ended {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => {
                        take_back();
                        warn!(%error, "another gateway asked for the ports and was never ready, this one serves on");
                    }
                    Err(error) => warn!(%error, "another gateway asked for the ports in vain"),
                },
            }
        }
    }
}

/// A folder for this user alone; gone when this is dropped.
struct Private(PathBuf);

impl Private {
    /// Makes it, also where one of that name was left behind by a process that was killed. One that cannot be removed, since it is
    /// somebody else's or holds more, is not used.
    fn make(path: PathBuf) -> io::Result<Self> {
        let this = Self(path);
        this.clear();
        fs::DirBuilder::new().mode(0o700).create(&this.0)?;
        Ok(this)
    }

    fn clear(&self) {
        // Errors: they are not there, or show when the folder is made.
        let _ = fs::remove_file(self.0.join("s"));
        let _ = fs::remove_dir(&self.0);
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Gives the sockets to one that asks, and waits until it is ready, however long it takes: what it learns from comes when
/// it comes.
async fn relieved_by(stream: UnixStream, sockets: Sockets) -> io::Result<()> {
    info!("another gateway asks for the ports");
    let stream = stream.into_std()?;
    let stream = spawn_blocking(move || {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        wire::send(&stream, &sockets)?;
        stream.set_nonblocking(true)?;
        Ok::<_, io::Error>(stream)
    })
    .await
    .map_err(io::Error::other)??;
    match UnixStream::from_std(stream)?.read_u8().await? {
        wire::READY => Ok(()),
        other => Err(wire::unexpected(other)),
    }
}

fn refuse_strangers(stream: &UnixStream) -> io::Result<()> {
    let uid = uid(stream)?;
    if is_trusted(uid) {
        return Ok(());
    }
    // A new connection has room for a byte.
    send(stream, &[wire::NO], SendFlags::NOSIGNAL)?;
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it runs as user {uid}")))
}

/// It would be replaced, and may be somebody's work.
fn no_socket() -> io::Error {
    let kind = io::ErrorKind::AlreadyExists;
    io::Error::new(kind, "something that is no socket is there; name a file of its own, or remove this one")
}

fn silent() -> io::Error {
    let said =
        format!("who listens there said nothing for {PATIENCE:?}; end it if it hangs, and start again");
    io::Error::new(io::ErrorKind::TimedOut, said)
}

fn ended() -> io::Error {
    let said = "who listens there ended before it gave its ports; start again";
    io::Error::new(io::ErrorKind::UnexpectedEof, said)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_is_for_this_user_alone_and_never_somebody_elses() {
        let around = tempfile::tempdir().unwrap();
        let path = around.path().join("takeover.1");
        for _ in 0..2 {
            // As a process leaves it that is killed.
            let folder = Private::make(path.clone()).unwrap();
            assert_eq!(mode(&path), 0o700);
            fs::write(path.join("s"), "").unwrap();
            std::mem::forget(folder);
        }
        drop(Private::make(path.clone()).unwrap());
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        fs::write(path.join("work"), "").unwrap();
        assert!(Private::make(path.clone()).is_err());
        assert!(path.join("work").exists());
    }

    #[tokio::test]
    async fn the_socket_is_for_this_user_alone_and_nothing_is_left_beside_it() {
        let around = tempfile::tempdir().unwrap();
        let path = around.path().join("takeover");
        for _ in 0..2 {
            let successors = Successors::listen(&path).unwrap();
            assert_eq!((mode(&path), fs::read_dir(around.path()).unwrap().count()), (0o600, 1));
            let own = UnixStream::connect(&path).await.unwrap();
            let (theirs, _) = successors.listener.accept().await.unwrap();
            for uid in [uid(&own), uid(&theirs)] {
                assert!(is_trusted(uid.unwrap()));
            }
        }
    }

    #[tokio::test]
    async fn sockets_are_taken_back_from_one_that_ends_before_it_is_ready_and_not_from_the_one_that_is() {
        let around = tempfile::tempdir().unwrap();
        let path = around.path().join("takeover");
        let successors = Successors::listen(&path).unwrap();
        let (given, taken_back) = (Cell::new(0), Cell::new(0));
        let give = || {
            given.set(given.get() + 1);
            Ok(Sockets::default())
        };
        let relieved = successors.relieved(give, || taken_back.set(taken_back.get() + 1));
        let others = async {
            drop(ask(&path).await.unwrap().unwrap());
            while taken_back.get() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let (_sockets, predecessor) = ask(&path).await.unwrap().unwrap();
            predecessor.relieve().unwrap();
        };
        let both = async { tokio::join!(relieved, others) };
        tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
        assert_eq!((given.get(), taken_back.get()), (2, 1));
    }

    #[test]
    fn root_and_this_user_may_take_over_and_nobody_else() {
        let own = geteuid().as_raw();
        assert!(is_trusted(own) && is_trusted(0));
        assert!(!is_trusted(own + 1));
    }
}
