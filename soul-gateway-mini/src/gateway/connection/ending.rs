//! How the connection of a caller ends, where the plain way would lose an answer.
//!
//! - A caller may end its side once it has asked, and still wait for the answer. From here that looks the same as one that
//!   left: so the end is kept from the server for a while, and for as long as the caller takes what is written.
//! - A caller that leaves while it waits is noticed, so that its request is given up. hyper would look for that by reading, into
//!   memory that it makes room for each time; where the stream is a bare socket the look is ours, and costs no memory and no
//!   system call.
//! - A caller may still be sending when it is answered early. To close at once would reset the connection, and the reset may
//!   overtake the answer: so what comes is read and thrown away for a while (RFC 9112, section 9.6).

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};
use tokio_rustls::server::TlsStream;

use crate::gateway::alarm::Alarm;

/// The stream of a caller.
pub(super) trait CallerStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Whether it is a bare socket, in which one can look ahead.
    const BARE: bool;

    /// What comes next from the caller of a bare socket.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Ahead>>;
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    Something,
    /// The end of the caller's side.
    End,
}

impl CallerStream for TlsStream<TcpStream> {
    const BARE: bool = false;

    fn poll_ahead(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Ahead>> {
        Poll::Pending
    }
}

/// How long the answer may take, and each pause in it, after the caller has ended its side.
const HALF_CLOSED_FOR: Duration = Duration::from_secs(1);

/// How long a caller that was answered early may take to see it.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes that are thrown away at once.
const PIECE: usize = 4 * 1024;

/// Whether a caller may be sending something that nobody will read.
#[derive(Clone, Debug)]
pub(super) struct Sending(Arc<AtomicBool>);

impl Default for Sending {
    /// So is one that has not been heard to the end of its first head.
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Sending {
    /// A request has come, with or without a body.
    pub(super) fn note(&self, body: bool) {
        self.0.store(body, Relaxed);
    }
}

/// A caller's stream.
#[derive(Debug)]
pub(super) struct Ending<S> {
    stream: S,
    /// Says whether a request is under way.
    alarm: Arc<Alarm>,
    sending: Sending,
    /// What was seen ahead and not read yet.
    ahead: Option<Ahead>,
    /// Runs since the caller has ended its side in the midst of a request.
    half_closed: Option<Pin<Box<Sleep>>>,
    /// Whether something waits for the caller to take it. To one that has left nothing could be sent at all.
    blocked: bool,
    /// Runs since this side has ended.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl<S> Ending<S> {
    pub(super) fn new(stream: S, alarm: Arc<Alarm>, sending: Sending) -> Self {
        Self { stream, alarm, sending, ahead: None, half_closed: None, blocked: false, lingering: None }
    }

    /// The caller has ended its side in the midst of a request: ready when it counts as one that left.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.half_closed.get_or_insert_with(|| Box::pin(sleep(HALF_CLOSED_FOR)));
        loop {
            ready!(sleep.as_mut().poll(cx));
            if !self.blocked {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(Instant::now() + HALF_CLOSED_FOR);
        }
    }

    /// Notes what came of a write: a caller that takes something, or is waited for, is there.
    fn wrote<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.blocked = written.is_pending();
        if let Some(sleep) = &mut self.half_closed {
            sleep.as_mut().reset(Instant::now() + HALF_CLOSED_FOR);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Ending<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.ahead = None;
        if buffer.filled().len() == before && buffer.remaining() > 0 && !self.alarm.is_idle() {
            ready!(self.poll_gone(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: CallerStream> Ending<S> {
    /// Looks whether a caller that waits for its answer is still there. Ready when it is not.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_none() {
            self.ahead = Some(ready!(self.stream.poll_ahead(cx))?);
        }
        match self.ahead {
            Some(Ahead::End) => self.poll_gone(cx).map(Ok),
            // Its next request, or more of this one: it is read when it is wanted.
            _ => Poll::Pending,
        }
    }
}

impl<S: CallerStream> AsyncWrite for Ending<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called whenever the server has looked after a request, and has nothing to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if S::BARE && !self.alarm.is_idle() && self.poll_left(cx)?.is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the caller has left")));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, sending, lingering, .. } = &mut *self;
        if lingering.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
            if !sending.0.load(Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let left = lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        while left.as_mut().poll(cx).is_pending() {
            let mut piece = [0; PIECE];
            let mut buffer = ReadBuf::new(&mut piece);
            let read = ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    impl CallerStream for DuplexStream {
        const BARE: bool = false;

        fn poll_ahead(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Ahead>> {
            Poll::Pending
        }
    }

    /// The server's end of a connection, the caller's, and what the server says about them.
    fn pair() -> (Ending<DuplexStream>, DuplexStream, Arc<Alarm>, Sending) {
        let (near, far) = duplex(64 * 1024);
        let (alarm, sending) = (Arc::new(Alarm::new()), Sending::default());
        (Ending::new(near, Arc::clone(&alarm), sending.clone()), far, alarm, sending)
    }

    async fn took(future: impl Future) -> Duration {
        let began = Instant::now();
        future.await;
        began.elapsed()
    }

    fn about(duration: Duration) -> std::ops::Range<Duration> {
        duration..duration + Duration::from_millis(10)
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_in_the_midst_of_a_request_is_told_later_and_another_at_once() {
        let (mut near, mut far, alarm, _) = pair();
        far.write_all(b"ask").await.unwrap();
        far.shutdown().await.unwrap();
        alarm.begin();
        let mut asked = [0; 8];
        assert_eq!(near.read(&mut asked).await.unwrap(), 3, "what it said before is heard at once");
        assert!(about(HALF_CLOSED_FOR).contains(&took(near.read(&mut asked)).await));

        let (mut near, mut far, ..) = pair();
        far.shutdown().await.unwrap();
        assert_eq!(took(near.read(&mut asked)).await, Duration::ZERO, "nothing is under way");
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_its_answer_is_there() {
        let (near, mut far, alarm, _) = pair();
        far.shutdown().await.unwrap();
        alarm.begin();
        let (mut reader, mut writer) = tokio::io::split(near);
        let answer = async {
            for _ in 0..10 {
                tokio::time::sleep(HALF_CLOSED_FOR / 2).await;
                writer.write_all(b"piece").await.unwrap();
            }
        };
        let mut byte = [0];
        let (took, ()) = tokio::join!(took(reader.read(&mut byte)), answer);
        assert!(about(HALF_CLOSED_FOR * 6).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_yet_to_take_something_is_there() {
        let (near, mut far, alarm, _) = pair();
        far.shutdown().await.unwrap();
        alarm.busy(Instant::now(), Duration::ZERO);
        let (mut reader, mut writer) = tokio::io::split(near);
        let more_than_fits = async {
            writer.write_all(&[0; 100_000]).await.unwrap();
        };
        let slowly = async {
            tokio::time::sleep(HALF_CLOSED_FOR * 10).await;
            let mut all = vec![0; 100_000];
            far.read_exact(&mut all).await.unwrap();
        };
        let mut byte = [0];
        let (took, (), ()) = tokio::join!(took(reader.read(&mut byte)), more_than_fits, slowly);
        assert!(about(HALF_CLOSED_FOR * 11).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_still_being_sent_is_read_before_the_connection_goes() {
        let (mut near, mut far, _, sending) = pair();
        sending.note(true);
        let caller = tokio::spawn(async move {
            far.write_all(&[0; 200_000]).await.unwrap();
            let mut answer = Vec::new();
            far.read_to_end(&mut answer).await.unwrap();
            answer
        });
        near.write_all(b"no").await.unwrap();
        assert_eq!(took(near.shutdown()).await, Duration::ZERO, "until it has gone");
        drop(near);
        assert_eq!(caller.await.unwrap(), b"no");

        let (mut near, far, ..) = pair();
        assert!(about(LINGER).contains(&took(near.shutdown()).await), "and no longer than so");
        drop(far);
        let (mut near, _far, _, sending) = pair();
        sending.note(false);
        assert_eq!(took(near.shutdown()).await, Duration::ZERO, "nothing is to be expected");
    }
}
