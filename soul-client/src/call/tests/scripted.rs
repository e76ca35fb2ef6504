//! An upstream that does what a test wants, byte for byte.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What an upstream does with a request that it has read.
#[derive(Clone, Debug)]
pub(super) enum Does {
    /// Answers with a status, further header lines and a body.
    Answer(u16, &'static str, String),
    /// Answers nothing, and keeps the connection.
    Hang,
    /// Closes the connection.
    Close,
    /// Promises a hundred bytes, sends a few and closes.
    Half,
    /// Promises a hundred bytes, sends a few and resets the connection.
    Reset,
    /// Promises a hundred bytes, sends a few and falls silent.
    Stall,
}

impl Does {
    pub(super) fn ok(body: &str) -> Self {
        Self::Answer(200, "", body.to_owned())
    }

    pub(super) fn status(status: u16) -> Self {
        Self::Answer(status, "", String::new())
    }
}

type Script = Arc<dyn Fn(usize) -> Does + Send + Sync>;

/// One upstream. Ends when it is dropped.
pub(super) struct Scripted {
    pub(super) address: String,
    seen: Arc<Mutex<Vec<String>>>,
    accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Scripted {
    /// An upstream that asks the script what to do with each request, numbered from 0.
    pub(super) async fn start(script: impl Fn(usize) -> Does + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, accepted) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (script, requests, connections) =
            (Arc::new(script) as Script, Arc::clone(&seen), Arc::clone(&accepted));
        let task = tokio::spawn(async move {
            let mut serving = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, SeqCst);
                serving.spawn(serve(stream, Arc::clone(&script), Arc::clone(&requests)));
            }
        });
        Self { address, seen, accepted, task }
    }

    /// Always the same.
    pub(super) async fn doing(does: Does) -> Self {
        Self::start(move |_| does.clone()).await
    }

    /// The requests so far, head and body.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// How many requests there were.
    pub(super) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// How many connections there were.
    pub(super) fn connections(&self) -> usize {
        self.accepted.load(SeqCst)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An address at which nobody listens.
pub(super) async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

async fn serve(mut stream: TcpStream, script: Script, seen: Arc<Mutex<Vec<String>>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len() - 1
        };
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
        match script(number) {
            Does::Answer(status, headers, body) => {
                let head =
                    format!("HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\n\r\n", body.len());
                if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
                    return;
                }
            }
            Does::Hang => std::future::pending().await,
            Does::Close => return,
            Does::Half => {
                stream.write_all(half).await.unwrap();
                return;
            }
            Does::Reset => {
                stream.write_all(half).await.unwrap();
                stream.set_zero_linger().unwrap();
                return;
            }
            Does::Stall => {
                stream.write_all(half).await.unwrap();
                std::future::pending().await
            }
        }
    }
}

/// One request with a length or none; `None` at the end of the connection.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(head) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let end = head + 4 + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
            if buffer.len() >= end {
                return Some(String::from_utf8_lossy(&buffer.drain(..end).collect::<Vec<_>>()).into_owned());
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => buffer.extend_from_slice(&piece[..read]),
        }
    }
}
