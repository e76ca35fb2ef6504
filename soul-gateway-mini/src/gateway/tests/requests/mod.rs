//! What callers may send and what they may not: each case by its bytes, what the caller is told, and what the upstream sees,
//! which is nothing or requests that can be read in one way only. Afterwards both connections are as they should be.

mod framing;
mod heads;

use super::{
    super::GatewayConfig,
    peers::{Message, Upstream, Wire, get},
    setup::{Running, handle, service},
};

/// One connection of a caller.
struct Case {
    name: &'static str,
    sent: Vec<u8>,
    /// Statuses, in order.
    told: &'static [u16],
    then: Then,
    /// Target and body of each request that arrived whole.
    seen: &'static [(&'static str, &'static str)],
}

/// What becomes of the caller's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It serves another request.
    Open,
    /// It ends.
    Closed,
}

use Then::{Closed, Open};

fn case(
    name: &'static str,
    sent: impl AsRef<[u8]>,
    told: &'static [u16],
    then: Then,
    seen: &'static [(&'static str, &'static str)],
) -> Case {
    Case { name, sent: sent.as_ref().to_vec(), told, then, seen }
}

/// A request that is refused: its connection ends, whatever stands behind it, and the upstream sees nothing.
fn refused(name: &'static str, sent: impl AsRef<[u8]>) -> Case {
    refused_with(name, sent, &[400])
}

fn refused_with(name: &'static str, sent: impl AsRef<[u8]>, told: &'static [u16]) -> Case {
    let behind = b"GET /http/behind HTTP/1.1\r\nHost: a\r\n\r\n";
    Case { name, sent: [sent.as_ref(), behind].concat(), told, then: Closed, seen: &[] }
}

/// A GET with these lines behind its `Host`.
fn with(lines: &str) -> String {
    format!("GET /http/x HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

/// A POST with these lines behind its `Host`, and what follows its head.
fn post(lines: &str, body: &str) -> String {
    format!("POST /http/x HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n{body}")
}

/// A POST in chunks.
fn chunked(body: &str) -> String {
    post("Transfer-Encoding: chunked", body)
}

/// What the upstream saw, without what broke off.
fn whole(upstream: &Upstream) -> Vec<Message> {
    upstream.seen().into_iter().filter(|message| message.whole).collect()
}

async fn hold(config: GatewayConfig, cases: Vec<Case>) {
    let upstream = Upstream::named("one").await;
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut faults = Vec::new();
    for Case { name, sent, told, then, seen } in cases {
        let before = whole(&upstream).len();
        let mut wire = Wire::connect(running.address()).await;
        wire.send(&sent).await;
        let mut statuses = Vec::new();
        for _ in told {
            statuses.push(wire.response_to("GET").await.status());
        }
        if statuses != told {
            faults.push(format!("{name}: told {statuses:?}, not {told:?}"));
        }
        let arrived = whole(&upstream);
        let arrived = &arrived[before..];
        let read: Vec<_> = arrived.iter().map(|m| (m.target().to_owned(), m.text())).collect();
        if !read.iter().map(|(target, body)| (target.as_str(), body.as_str())).eq(seen.iter().copied()) {
            faults.push(format!("{name}: the upstream saw {read:?}, not {seen:?}"));
        }
        for message in arrived {
            let framings = message.values("content-length").len() + message.values("transfer-encoding").len();
            if framings > 1 || message.values("host").len() != 1 {
                faults.push(format!("{name}: ambiguous {message:?}"));
            }
        }
        match then {
            Closed if !wire.is_closed().await => faults.push(format!("{name}: more came")),
            Closed => {}
            Open => {
                wire.send("GET /http/next HTTP/1.1\r\nHost: a\r\n\r\n").await;
                let next = wire.response_to("GET").await;
                if next.text() != "one" || upstream.last().target() != "/next" {
                    faults.push(format!("{name}: it is not usable: {next:?}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(get(running.address(), "/http/x").await.text(), "one", "and the gateway serves on");
    let known = &running.status().await["config"]["selectors"][0]["upstreams"][0];
    assert_eq!(known["failures"], 0, "nobody blames the upstream: {known}");
}
