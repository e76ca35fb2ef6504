//! Both directions of one exchange at once: neither waits for the other.

use std::net::SocketAddr;

use http::{Request, Response};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpSocket},
    sync::mpsc,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    http2,
    peers::{Wire, within},
    setup::{Running, handle, service},
    upstream_http2::{self, Peer, read},
};

/// More than all buffers on the way to a caller that does not read hold.
const UNREAD: usize = 16 * 1024 * 1024;

/// More than what such an answer could take with it.
const SENT: usize = 8 * 1024 * 1024;

/// An upstream of HTTP/1.1 that answers at once and at length, and takes all of the request meanwhile; says how much that was.
async fn talking() -> (SocketAddr, mpsc::UnboundedReceiver<usize>, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (took, taken) = mpsc::unbounded_channel();
    let upstream = tokio::spawn(async move {
        let (reader, mut writer) = listener.accept().await.unwrap().0.into_split();
        let answering = async move {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {UNREAD}\r\n\r\n");
            writer.write_all(head.as_bytes()).await.unwrap();
            writer.write_all(&vec![b'x'; UNREAD]).await.unwrap();
        };
        let taking = async move {
            let mut wire = Wire::new(tokio::io::join(reader, tokio::io::empty()));
            took.send(wire.request().await.unwrap().body.len()).unwrap();
        };
        tokio::join!(answering, taking);
    });
    (address, taken, AbortOnDropHandle::new(upstream))
}

/// The same over HTTP/2.
async fn talking_http2() -> (Peer, mpsc::UnboundedReceiver<usize>) {
    let (took, taken) = mpsc::unbounded_channel();
    let peer = Peer::start(move |request, mut respond| {
        let took = took.clone();
        async move {
            let head = Response::builder().header("content-length", UNREAD).body(()).unwrap();
            let mut answer = respond.send_response(head, false).unwrap();
            let answering = upstream_http2::send(&mut answer, vec![b'x'; UNREAD].into());
            let taking = async move {
                let (body, _) = read(request.into_body()).await;
                took.send(body.len()).unwrap();
            };
            tokio::join!(answering, taking);
        }
    })
    .await;
    (peer, taken)
}

/// Sends all of a body; reads the answer when all of that was taken.
async fn talk(gateway: SocketAddr, mut taken: mpsc::UnboundedReceiver<usize>) {
    // With a small window, so that what is not read stops the gateway soon.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let mut wire = Wire::new(within(socket.connect(gateway)).await.unwrap());
    wire.send(format!("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: {SENT}\r\n\r\n")).await;
    wire.send(vec![b'y'; SENT]).await;
    assert_eq!(within(taken.recv()).await, Some(SENT));
    let answer = wire.response_to("POST").await;
    assert_eq!((answer.body.len(), answer.whole), (UNREAD, true));
}

async fn talk_http2(gateway: SocketAddr, mut taken: mpsc::UnboundedReceiver<usize>) {
    let caller = http2::Caller::connect(gateway).await;
    let request = Request::post("http://a/http/x").body(()).unwrap();
    let mut sender = within(caller.send.clone().ready()).await.unwrap();
    let (answer, mut body) = sender.send_request(request, false).unwrap();
    within(upstream_http2::send(&mut body, vec![b'y'; SENT].into())).await;
    assert_eq!(within(taken.recv()).await, Some(SENT));
    assert_eq!(http2::whole(answer).await.unwrap().1.len(), UNREAD);
}

#[tokio::test]
async fn a_caller_may_send_all_before_it_reads_an_answer_that_has_begun() {
    let (address, taken, _upstream) = talking().await;
    let running = Running::start(&service(&[address], &handle("random", 0, 9000))).await;
    talk(running.address(), taken).await;

    let (address, taken, _upstream) = talking().await;
    let running = Running::start(&service(&[address], &handle("random", 0, 9000))).await;
    talk_http2(running.address(), taken).await;

    let (peer, taken) = talking_http2().await;
    talk(peer.behind(9000).await.address(), taken).await;

    let (peer, taken) = talking_http2().await;
    talk_http2(peer.behind(9000).await.address(), taken).await;
}
