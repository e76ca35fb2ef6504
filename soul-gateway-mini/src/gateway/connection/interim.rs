//! Interim answers of an upstream, such as `103 Early Hints`, on their way to a caller of HTTP/1.1 (RFC 9110, section 15.2).
//!
//! hyper, which speaks to callers, sends none but 100 and 101. So they are written beside it, into its stream, while it has
//! nothing to write itself: it flushes an empty buffer each time a request was looked after, and begins its answer with a write.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ending::{Ahead, CallerStream};

/// Bytes that wait for a caller to take them.
const MAX_WAITING: usize = 32 * 1024;

/// What is to be told to the caller of one connection besides its answers.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Interims {
    waiting: Mutex<Vec<u8>>,
    /// Whether anything waits; looked at without the lock.
    any: AtomicBool,
    /// Whether the server has begun to write something of its own, and not ended.
    writing: AtomicBool,
}

impl Interims {
    /// Tells a whole head of an interim answer, before the final one; it is dropped where that cannot be: the caller has not
    /// even taken its last answer, or none of these.
    pub(in crate::gateway) fn tell(&self, head: &[u8]) {
        let mut waiting = self.lock();
        if !self.writing.load(Relaxed) && waiting.len() + head.len() <= MAX_WAITING {
            waiting.extend_from_slice(head);
            self.any.store(true, Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        // Nothing panics while it is held, and bytes are bytes at any moment.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream of a caller's connection.
#[derive(Debug)]
pub(super) struct Telling<S> {
    stream: S,
    interims: Arc<Interims>,
}

impl<S> Telling<S> {
    pub(super) fn new(stream: S, interims: Arc<Interims>) -> Self {
        Self { stream, interims }
    }
}

impl<S: AsyncWrite + Unpin> Telling<S> {
    /// Writes what waits. Ready when all of it was taken.
    fn poll_tell(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.interims.any.load(Relaxed) {
            return Poll::Ready(Ok(()));
        }
        self.poll_tell_all(cx)
    }

    #[cold]
    fn poll_tell_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, interims } = self;
        let mut waiting = interims.lock();
        while !waiting.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, &waiting))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            waiting.drain(..written);
        }
        *waiting = Vec::new();
        interims.any.store(false, Relaxed);
        Poll::Ready(Ok(()))
    }

    /// The server begins, or goes on, to write something of its own, once what waits was taken. From then on nothing joins that:
    /// it would be about the next request.
    fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.interims.writing.store(true, Relaxed);
        self.poll_tell(cx)
    }
}

impl<S: CallerStream> CallerStream for Telling<S> {
    const BARE: bool = S::BARE;

    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Ahead>> {
        self.stream.poll_ahead(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Telling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Telling<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_begin(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_begin(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when the server has written all that it had.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_tell(cx))?;
        self.interims.writing.store(false, Relaxed);
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, time::Duration};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        time::timeout,
    };

    use super::*;

    const HINT: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\n";

    fn pair(room: usize) -> (Telling<DuplexStream>, DuplexStream, Arc<Interims>) {
        let (near, far) = duplex(room);
        let interims = Arc::default();
        (Telling::new(near, Arc::clone(&interims)), far, interims)
    }

    async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    async fn taken(mut near: Telling<DuplexStream>, mut far: DuplexStream) -> Vec<u8> {
        near.shutdown().await.unwrap();
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.unwrap();
        all
    }

    #[tokio::test]
    async fn it_is_told_when_the_server_has_nothing_to_write_or_before_it_begins() {
        let (mut near, far, interims) = pair(1024);
        interims.tell(HINT);
        near.flush().await.unwrap();
        interims.tell(HINT);
        near.write_all(b"answer").await.unwrap();
        assert_eq!(taken(near, far).await, [HINT, HINT, b"answer"].concat());
    }

    #[tokio::test]
    async fn nothing_gets_into_the_midst_of_what_the_server_writes() {
        let (mut near, far, interims) = pair(1024);
        near.write_all(b"half an ").await.unwrap();
        interims.tell(HINT);
        near.write_all(b"answer").await.unwrap();
        near.flush().await.unwrap();
        interims.tell(HINT);
        near.flush().await.unwrap();
        assert_eq!(
            taken(near, far).await,
            [b"half an answer", HINT].concat(),
            "what came too early is dropped"
        );
    }

    #[tokio::test]
    async fn nothing_gets_before_an_answer_that_waits_for_room() {
        let (mut near, mut far, interims) = pair(8);
        interims.tell(HINT);
        let mut all = Vec::new();
        {
            let mut writing = pin!(near.write_all(b"answer"));
            assert!(poll_once(writing.as_mut()).await.is_none(), "there is no room");
            interims.tell(b"of the next request");
            let reading = async {
                while all.len() < HINT.len() {
                    far.read_buf(&mut all).await.unwrap();
                }
            };
            let both = async { tokio::join!(writing, reading).0 };
            timeout(Duration::from_secs(30), both).await.expect("the hint goes out").unwrap();
        }
        let writing = tokio::spawn(async move {
            near.flush().await.unwrap();
            near.shutdown().await.unwrap();
        });
        far.read_to_end(&mut all).await.unwrap();
        writing.await.unwrap();
        assert_eq!(all, [HINT, b"answer"].concat());
    }

    #[tokio::test]
    async fn a_caller_that_takes_nothing_is_told_no_more_than_so_much() {
        let (mut near, mut far, interims) = pair(8);
        for _ in 0..100_000 {
            interims.tell(HINT);
        }
        assert!(interims.lock().len() <= MAX_WAITING);
        let writing = tokio::spawn(async move {
            near.write_all(b"answer").await.unwrap();
        });
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.unwrap();
        writing.await.unwrap();
        let told = MAX_WAITING / HINT.len();
        assert_eq!(all, [&HINT.repeat(told)[..], b"answer"].concat(), "each of them whole");
        assert_eq!(interims.lock().capacity(), 0, "and no memory is kept");
    }
}
