//! The two sides of a gateway: a caller and an upstream that show every byte.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

/// No story takes longer.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// Waits for `future`, which must end in time.
pub(super) async fn within<F: Future>(future: F) -> F::Output {
    timeout(DEADLINE, future).await.expect("it takes too long")
}

/// Waits until `condition` holds.
pub(super) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let reached = timeout(DEADLINE, async {
        while !condition().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(reached.await.is_ok(), "never came true: {what}");
}

/// A message as it came.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    /// Request or status line.
    pub(super) start: String,
    /// `name: value`, the name in lower case, in order.
    pub(super) headers: Vec<String>,
    /// Without framing.
    pub(super) body: Vec<u8>,
    /// What came behind the last chunk, as the headers.
    pub(super) trailers: Vec<String>,
    /// Whether the body came to its end.
    pub(super) whole: bool,
}

impl Message {
    pub(super) fn values(&self, name: &str) -> Vec<&str> {
        let prefix = format!("{name}: ");
        self.headers.iter().filter_map(|h| h.strip_prefix(&prefix)).collect()
    }

    pub(super) fn status(&self) -> u16 {
        self.start
            .split(' ')
            .nth(1)
            .and_then(|s| s.parse().ok())
            .unwrap_or_else(|| panic!("no status: {self:?}"))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What a request line asks for.
    pub(super) fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }
}

/// A connection that reads messages.
pub(super) struct Wire<S = TcpStream> {
    pub(super) stream: S,
    unread: Vec<u8>,
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self::new(within(TcpStream::connect(address)).await.expect("connect"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.expect("send");
    }

    /// Whether just this is unread; then it counts as read.
    pub(super) fn has(&mut self, text: &str) -> bool {
        let there = self.unread == text.as_bytes();
        if there {
            self.unread.clear();
        }
        there
    }

    /// Reads more; `false` at the end.
    pub(super) async fn more(&mut self) -> bool {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk).await {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.unread.extend_from_slice(&chunk[..read]);
                true
            }
        }
    }

    /// The lines up to an empty one; `None` if the other side closes before.
    pub(super) async fn head(&mut self) -> Option<Message> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|w| w == b"\r\n\r\n") {
                break end;
            }
            if !self.more().await {
                return None;
            }
        };
        let head: Vec<u8> = self.unread.drain(..end + 4).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.trim_end().split("\r\n").map(str::to_owned);
        let start = lines.next()?;
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            format!("{}: {}", name.to_ascii_lowercase(), value.trim())
        });
        Some(Message { start, headers: headers.collect(), ..Message::default() })
    }

    pub(super) async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.unread.len() < length {
            if !self.more().await {
                return None;
            }
        }
        Some(self.unread.drain(..length).collect())
    }

    pub(super) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|w| w == b"\r\n") {
                let line: Vec<u8> = self.unread.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn body(&mut self, message: &mut Message, until_close: bool) {
        if message.values("transfer-encoding").iter().any(|v| v.contains("chunked")) {
            message.whole = self.chunks(message).await.is_some();
        } else if let Some(length) = message.values("content-length").first().and_then(|l| l.parse().ok()) {
            match self.take(length).await {
                Some(body) => (message.body, message.whole) = (body, true),
                None => message.body = std::mem::take(&mut self.unread),
            }
        } else if until_close {
            while self.more().await {}
            (message.body, message.whole) = (std::mem::take(&mut self.unread), true);
        } else {
            message.whole = true;
        }
    }

    async fn chunks(&mut self, message: &mut Message) -> Option<()> {
        loop {
            let size = usize::from_str_radix(self.line().await?.split(';').next()?, 16).ok()?;
            if size == 0 {
                loop {
                    let line = self.line().await?;
                    if line.is_empty() {
                        return Some(());
                    }
                    message.trailers.push(line.to_ascii_lowercase());
                }
            }
            message.body.extend(self.take(size).await?);
            self.line().await?;
        }
    }

    /// One request with its body.
    pub(super) async fn request(&mut self) -> Option<Message> {
        let mut message = self.head().await?;
        self.body(&mut message, false).await;
        Some(message)
    }

    /// One final response with its body. `method`: of the request it answers.
    pub(super) async fn response_to(&mut self, method: &str) -> Message {
        within(async {
            let mut message = self.head().await.expect("the connection was closed without an answer");
            if method == "HEAD" || matches!(message.status(), 204 | 304) {
                message.whole = true;
            } else {
                self.body(&mut message, true).await;
            }
            message
        })
        .await
    }

    /// Whether the other side closes without sending more.
    pub(super) async fn is_closed(&mut self) -> bool {
        within(self.more()).await;
        self.unread.is_empty()
    }
}

/// Sends one request on a connection of its own and gives the answer.
pub(super) async fn ask(gateway: SocketAddr, request: impl AsRef<[u8]>) -> Message {
    let mut wire = Wire::connect(gateway).await;
    wire.send(&request).await;
    let method = String::from_utf8_lossy(request.as_ref()).split(' ').next().unwrap_or_default().to_owned();
    wire.response_to(&method).await
}

/// GETs a path.
pub(super) async fn get(gateway: SocketAddr, path: &str) -> Message {
    ask(gateway, format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n")).await
}

/// What an upstream does with a request.
pub(super) enum Reply {
    /// Sends this.
    Bytes(Vec<u8>),
    /// Sends this and closes.
    Last(Vec<u8>),
    /// Sends this after a while.
    Later(Duration, Vec<u8>),
    /// Sends this once it is let.
    Once(Gate, Vec<u8>),
    /// Never answers.
    Hang,
}

/// Holds answers back until it is opened.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<tokio::sync::watch::Sender<bool>>);

impl Gate {
    pub(super) fn open(&self) {
        self.0.send_replace(true);
    }

    /// An answer that waits for it.
    pub(super) fn then(&self, body: &str) -> Reply {
        let Reply::Bytes(bytes) = ok(body) else { unreachable!("it is one") };
        Reply::Once(self.clone(), bytes)
    }

    async fn opened(&self) {
        self.0.subscribe().wait_for(|open| *open).await.expect("the gate is here");
    }
}

/// A plain answer with a body.
pub(super) fn ok(body: &str) -> Reply {
    Reply::Bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

pub(super) type Script = Arc<dyn Fn(&Message) -> Reply + Send + Sync>;

/// An upstream that keeps what it is asked.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Message>>>,
    connections: Arc<AtomicUsize>,
    /// Connections that the other side closed while an answer was awaited.
    abandoned: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl Upstream {
    pub(super) async fn start(script: impl Fn(&Message) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }

    pub(super) async fn start_at(
        address: SocketAddr,
        script: impl Fn(&Message) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("bind an upstream");
        let address = listener.local_addr().unwrap();
        let (seen, connections, abandoned) = (Arc::default(), Arc::default(), Arc::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(
            listener,
            Arc::new(script),
            Arc::clone(&seen),
            Arc::clone(&connections),
            Arc::clone(&abandoned),
        ));
        Self { address, seen, connections, abandoned, tasks }
    }

    /// One that answers every request with its name.
    pub(super) async fn named(name: &'static str) -> Self {
        Self::start(move |_| ok(name)).await
    }

    pub(super) fn seen(&self) -> Vec<Message> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn last(&self) -> Message {
        self.seen().pop().expect("the upstream was asked nothing")
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    pub(super) fn abandoned(&self) -> usize {
        self.abandoned.load(SeqCst)
    }

    /// Closes listener and connections.
    pub(super) async fn stop(mut self) -> SocketAddr {
        self.tasks.shutdown().await;
        self.address
    }
}

async fn accept(
    listener: TcpListener,
    script: Script,
    seen: Arc<Mutex<Vec<Message>>>,
    connections: Arc<AtomicUsize>,
    abandoned: Arc<AtomicUsize>,
) {
    // Its connections end with it.
    let mut open = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, SeqCst);
        open.spawn(converse(
            Wire::new(stream),
            Arc::clone(&script),
            Arc::clone(&seen),
            Arc::clone(&abandoned),
        ));
    }
}

pub(super) async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    mut wire: Wire<S>,
    script: Script,
    seen: Arc<Mutex<Vec<Message>>>,
    abandoned: Arc<AtomicUsize>,
) {
    while let Some(request) = wire.request().await {
        seen.lock().unwrap().push(request.clone());
        let (bytes, last) = match script(&request) {
            Reply::Bytes(bytes) => (bytes, false),
            Reply::Last(bytes) => (bytes, true),
            Reply::Later(pause, bytes) => {
                sleep(pause).await;
                (bytes, false)
            }
            Reply::Once(gate, bytes) => {
                gate.opened().await;
                (bytes, false)
            }
            Reply::Hang => {
                wire.more().await;
                abandoned.fetch_add(1, SeqCst);
                return;
            }
        };
        if wire.stream.write_all(&bytes).await.is_err() || last {
            return;
        }
    }
}

/// An address at which nobody listens.
pub(super) async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// The same, where only who has this may listen later.
pub(super) fn reserved() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    socket
}
