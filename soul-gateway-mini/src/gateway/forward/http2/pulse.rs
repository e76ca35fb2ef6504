//! Whether the other end of a shared connection is still there: a host that vanishes says nothing, and what is sent to it
//! waits.
//!
//! - A request that was late casts doubt on its connection: others are asked on another one until the upstream has answered a
//!   PING. Nothing happens to the requests that share it.
//! - The same question is asked when requests are under way and nothing has come for a while, or none came before their callers
//!   gave them up.
//! - It is asked ever more seldom while nothing but answers to it comes. Where there is doubt and it may not be asked yet, the
//!   connection is left alone until it may.
//! - Who does not answer it in time is gone, and so are all requests that wait there.

use std::{
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Relaxed},
    },
    time::Duration,
};

use h2::{Ping, PingPong};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

/// How long nothing may come before the first question, and how often that is looked at.
const SILENCE: Duration = Duration::from_secs(10);

/// And before the later ones, after the last answer to them and if still nothing else came, four times as long each time: servers
/// of gRPC end a connection on which the fourth PING comes sooner than five minutes after the third, with nothing of their own in
/// between.
const SILENCE_MAX: Duration = Duration::from_secs(310);

/// How long an answer to the question may take: the pauses of a busy program are no deaths.
const PONG_WITHIN: Duration = Duration::from_secs(10);

/// What those who ask on a connection and the task that moves its frames tell each other.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    under_way: AtomicUsize,
    /// Nothing more is to be asked on it.
    retired: AtomicBool,
    /// Nothing more is to be asked on it for now.
    doubted: AtomicBool,
    doubt: Notify,
    /// Whether anything of an answer came since it was last looked.
    heard: AtomicBool,
    /// Whether a caller gave up a request before that.
    missed: AtomicBool,
}

impl Pulse {
    /// How many requests are under way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Relaxed)
    }

    pub(super) fn begin(&self) {
        self.under_way.fetch_add(1, AcqRel);
    }

    pub(super) fn end(&self) {
        self.under_way.fetch_sub(1, AcqRel);
    }

    /// Something of an answer has come.
    pub(super) fn hear(&self) {
        self.heard.store(true, Relaxed);
    }

    /// An answer did not come in time.
    pub(super) fn doubt(&self) {
        self.doubted.store(true, Relaxed);
        self.doubt.notify_one();
    }

    /// An answer did not come before its caller gave up, which may have been soon.
    pub(super) fn miss(&self) {
        self.missed.store(true, Relaxed);
    }

    pub(super) fn retire(&self) {
        self.retired.store(true, Relaxed);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed)
    }

    /// Whether something may be asked on it.
    pub(super) fn is_trusted(&self) -> bool {
        !self.is_retired() && !self.doubted.load(Relaxed)
    }

    /// Ends when the upstream is there no more.
    pub(super) async fn watch(&self, mut pings: PingPong) {
        let mut silence = SILENCE;
        let mut answered = None::<Instant>;
        loop {
            let anew = tokio::select! {
                () = self.doubt.notified() => true,
                () = sleep(SILENCE) => false,
            };
            let heard = self.heard.swap(false, Relaxed);
            if heard {
                silence = SILENCE;
                self.missed.store(false, Relaxed);
            }
            let since = answered.map(|answered| answered.elapsed());
            // Who has just answered is believed, and so is who has answered anything since the doubt.
            if since.is_some_and(|since| since < SILENCE) || heard && !anew {
                self.doubted.store(false, Relaxed);
                continue;
            }
            let waits = self.under_way() > 0 || self.missed.load(Relaxed);
            if !(self.doubted.load(Relaxed) || !heard && waits) || since.is_some_and(|since| since < silence)
            {
                continue;
            }
            match timeout(PONG_WITHIN, pings.ping(Ping::opaque())).await {
                Ok(Ok(_)) => answered = Some(Instant::now()),
                // The connection ends anyway.
                Ok(Err(_)) => std::future::pending().await,
                Err(_) => return,
            }
            silence = (silence * 4).min(SILENCE_MAX);
            self.missed.store(false, Relaxed);
            self.doubted.store(false, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use bytes::Bytes;
    use h2::client;
    use http::Request;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// An upstream that answers no request, and PINGs as long as it is `there`.
    #[derive(Default)]
    struct Mute {
        gone: AtomicBool,
        pings: AtomicUsize,
    }

    impl Mute {
        async fn serve(self: Arc<Self>, mut stream: DuplexStream) -> io::Result<()> {
            const SETTINGS: u8 = 4;
            const PING: u8 = 6;
            const ACK: u8 = 1;

            let mut preface = [0; 24];
            stream.read_exact(&mut preface).await?;
            stream.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).await?;
            loop {
                let mut head = [0; 9];
                stream.read_exact(&mut head).await?;
                let mut rest = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
                stream.read_exact(&mut rest).await?;
                let asks = head[4] & ACK == 0 && !self.gone.load(Relaxed);
                match head[3] {
                    SETTINGS if asks => stream.write_all(&[0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0]).await?,
                    PING if asks => {
                        self.pings.fetch_add(1, Relaxed);
                        stream.write_all(&[0, 0, 8, PING, ACK, 0, 0, 0, 0]).await?;
                        stream.write_all(&rest).await?;
                    }
                    _ => {}
                }
            }
        }
    }

    struct Story {
        mute: Arc<Mute>,
        pulse: Arc<Pulse>,
        send: client::SendRequest<Bytes>,
        watching: AbortOnDropHandle<()>,
        _moving: [AbortOnDropHandle<()>; 2],
    }

    async fn story() -> Story {
        let (near, far) = duplex(64 * 1024);
        let (mute, pulse) = (Arc::<Mute>::default(), Arc::<Pulse>::default());
        let serving = Arc::clone(&mute).serve(far);
        let serving = tokio::spawn(async move { serving.await.unwrap_or_default() });
        let (send, mut connection) = client::handshake(near).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        let moving = tokio::spawn(async move { connection.await.unwrap_or_default() });
        let watched = Arc::clone(&pulse);
        let watching = AbortOnDropHandle::new(tokio::spawn(async move { watched.watch(pings).await }));
        let _moving = [serving, moving].map(AbortOnDropHandle::new);
        Story { mute, pulse, send, watching, _moving }
    }

    impl Story {
        /// A request that is never answered.
        fn ask(&mut self) -> client::ResponseFuture {
            self.pulse.begin();
            self.send.send_request(Request::new(()), true).unwrap().0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_vanished_is_noticed_while_something_waits() {
        let mut story = story().await;
        story.mute.gone.store(true, Relaxed);
        sleep(HOUR).await;
        assert!(!story.watching.is_finished(), "nobody asks");
        let _waiting = story.ask();
        let began = Instant::now();
        (&mut story.watching).await.unwrap();
        assert!(began.elapsed() <= SILENCE + PONG_WITHIN, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_for_long_is_not_asked_too_often() {
        let mut story = story().await;
        let _waiting = story.ask();
        sleep(HOUR * 10).await;
        assert!(!story.watching.is_finished());
        let pings = story.mute.pings.load(Relaxed);
        assert!((100..=120).contains(&pings), "{pings}");
    }

    #[tokio::test(start_paused = true)]
    async fn doubt_keeps_others_away_until_the_answer() {
        let mut story = story().await;
        let _waiting = story.ask();
        assert!(story.pulse.is_trusted());
        for _ in 0..5 {
            story.pulse.doubt();
            assert!(!story.pulse.is_trusted());
            sleep(SILENCE / 10).await;
            assert!(story.pulse.is_trusted());
        }
        assert_eq!(story.mute.pings.load(Relaxed), 1, "who has just answered is believed");
        // From now on it is heard of now and then, so that it may be asked at any time.
        story.pulse.hear();
        story.mute.gone.store(true, Relaxed);
        sleep(SILENCE).await;
        story.pulse.doubt();
        let began = Instant::now();
        (&mut story.watching).await.unwrap();
        assert!(began.elapsed() <= PONG_WITHIN + SILENCE / 100, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn doubts_do_not_ask_more_often_than_servers_of_grpc_allow() {
        let mut story = story().await;
        let _waiting = story.ask();
        let mut untrusted = 0;
        for _ in 0..45 {
            story.pulse.doubt();
            sleep(SILENCE + Duration::from_secs(1)).await;
            untrusted += usize::from(!story.pulse.is_trusted());
        }
        let pings = story.mute.pings.load(Relaxed);
        assert!((2..=3).contains(&pings), "{pings} within 495 s");
        assert!(untrusted > 30, "{untrusted}: others are asked elsewhere meanwhile");
        story.pulse.hear();
        sleep(SILENCE * 2).await;
        assert!(story.pulse.is_trusted(), "it has answered since");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_vanished_is_noticed_by_those_who_never_wait_for_long() {
        let mut story = story().await;
        story.mute.gone.store(true, Relaxed);
        story.pulse.miss();
        assert!(story.pulse.is_trusted(), "others are still asked there");
        let began = Instant::now();
        (&mut story.watching).await.unwrap();
        assert!(began.elapsed() <= SILENCE + PONG_WITHIN, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_answers_requests_is_not_asked() {
        let mut story = story().await;
        let _waiting = story.ask();
        for _ in 0..1000 {
            story.pulse.hear();
            sleep(SILENCE / 2).await;
        }
        assert_eq!(story.mute.pings.load(Relaxed), 0);
    }
}
