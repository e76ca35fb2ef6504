//! Callers that speak HTTP/2 in order to cost more than they pay.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    http2::over,
    peers::{Upstream, Wire, get, within},
    setup::config,
};

/// Frames by hand, for what no library sends.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
/// `GET http://a/`, of the static table but for the address.
const ASK: &[u8] = &[0x82, 0x86, 0x84, 0x41, 1, b'a'];

pub(super) async fn begun(gateway: SocketAddr) -> Wire {
    let mut wire = Wire::connect(gateway).await;
    wire.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, &[])[..]].concat()).await;
    wire
}

/// Reads frames up to the one that ends the connection; gives why it ended.
async fn goodbye(wire: &mut Wire) -> Option<u32> {
    within(async {
        let mut head = [0; 9];
        loop {
            wire.stream.read_exact(&mut head).await.ok()?;
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            wire.stream.read_exact(&mut payload).await.ok()?;
            if head[3] == GOAWAY {
                return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_flood_of_resets_is_cut() {
    let upstream = Upstream::named("one").await;
    let running = over(config(), &upstream).await;
    let mut wire = begun(running.address()).await;
    let mut flood = Vec::new();
    for stream in (1..2000).step_by(2) {
        flood.extend(frame(HEADERS, 0b101, stream, ASK));
        flood.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    // It may be cut before all was taken.
    let _ = wire.stream.write_all(&flood).await;
    assert_eq!(goodbye(&mut wire).await, Some(11), "ENHANCE_YOUR_CALM");
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
}

#[tokio::test]
async fn a_head_without_an_end_is_cut() {
    let upstream = Upstream::named("one").await;
    let running = over(config(), &upstream).await;
    let mut wire = begun(running.address()).await;
    wire.send(frame(HEADERS, 0b001, 1, ASK)).await;
    // Literals that are not kept: `x: y...`, of 16 KiB each.
    let mut literal = vec![0x00, 1, b'x', 0x7f, 0xf1, 0x7d];
    literal.resize(16_000 + 112 + 6, b'y');
    let flooding = async {
        for _ in 0..2000 {
            let piece = frame(CONTINUATION, 0, 1, &literal[..16_000]);
            if wire.stream.write_all(&piece).await.is_err() {
                return;
            }
        }
        panic!("32 MB of a head were taken");
    };
    within(flooding).await;
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
    assert_eq!(upstream.seen().len(), 1);
}
