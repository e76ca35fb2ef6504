//! Request lines, headers, and what becomes of the connection.

use super::{
    super::{super::GatewayConfig, setup::config},
    Closed, Open, case, chunked, hold, post, refused, refused_with, with,
};

#[tokio::test]
async fn a_head_is_read_in_one_way_or_not_at_all() {
    hold(
        config(),
        vec![
            // RFC 9112, section 2.2, permits it; the upstream gets whole line ends.
            case(
                "lines that end in LF alone",
                "GET /http/x HTTP/1.1\nHost: a\n\n",
                &[200],
                Open,
                &[("/x", "")],
            ),
            case(
                "an empty line in front",
                "\r\n\r\nGET /http/x HTTP/1.1\r\nHost: a\r\n\r\n",
                &[200],
                Open,
                &[("/x", "")],
            ),
            case(
                "a method of its own",
                "BREW /http/x HTTP/1.1\r\nHost: a\r\n\r\n",
                &[200],
                Open,
                &[("/x", "")],
            ),
            case(
                "a name with every sign it may have",
                with("!#$%&'*+-.^_`|~09aZ: 1\r\n"),
                &[200],
                Open,
                &[("/x", "")],
            ),
            case(
                "a fragment is none of the target's",
                "GET /http/x?y#z HTTP/1.1\r\nHost: a\r\n\r\n",
                &[200],
                Open,
                &[("/x?y", "")],
            ),
            case(
                "bytes beyond ASCII in a value",
                b"GET /http/x HTTP/1.1\r\nHost: a\r\nX: \xe9\xff\r\n\r\n",
                &[200],
                Open,
                &[("/x", "")],
            ),
            refused("a folded line", with("X: 1\r\n folded\r\n")),
            refused("a folded line with a tab", with("X: 1\r\n\tfolded\r\n")),
            refused("a line that begins with a blank", "GET /http/x HTTP/1.1\r\n Host: a\r\n\r\n"),
            refused("a lone CR in a value", with("X: a\rb\r\n")),
            refused("a lone CR as end of line", with("X: a\rY: b\r\n")),
            refused("NUL in a value", with("X: a\0b\r\n")),
            refused("a control sign in a value", with("X: a\x01b\r\n")),
            refused("DEL in a value", with("X: a\x7fb\r\n")),
            refused("NUL in a name", with("X\0: 1\r\n")),
            refused("a blank in front of the colon", with("X : 1\r\n")),
            refused("a blank in a name", with("X Y: 1\r\n")),
            refused("no colon", with("X\r\n")),
            refused("no name", with(": 1\r\n")),
            refused("a name that is no token", with("X(Y): 1\r\n")),
            refused("a name beyond ASCII", with("X\u{e9}: 1\r\n")),
            refused("a method that is no token", "G(T /http/x HTTP/1.1\r\nHost: a\r\n\r\n"),
            refused("no method", " /http/x HTTP/1.1\r\nHost: a\r\n\r\n"),
            refused("no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n"),
            refused("a blank in the target", "GET /http/x y HTTP/1.1\r\nHost: a\r\n\r\n"),
            refused("a tab in the line", "GET\t/http/x HTTP/1.1\r\nHost: a\r\n\r\n"),
            refused("a control sign in the target", "GET /http/\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
            refused("HTTP/0.9", "GET /http/x\r\n\r\n"),
            refused("HTTP/2.0", "GET /http/x HTTP/2.0\r\nHost: a\r\n\r\n"),
            refused("HTTP/1.2", "GET /http/x HTTP/1.2\r\nHost: a\r\n\r\n"),
            refused("http/1.1 in small letters", "GET /http/x http/1.1\r\nHost: a\r\n\r\n"),
            refused("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        ],
    )
    .await;
}

#[tokio::test]
async fn targets_and_hosts() {
    let to = |line: &str, host: &str| format!("{line}\r\n{host}\r\n");
    hold(
        config(),
        vec![
            case(
                "an absolute target",
                to("GET http://a/http/x?y HTTP/1.1", "Host: a\r\n"),
                &[200],
                Open,
                &[("/x?y", "")],
            ),
            case(
                "an absolute target of another scheme",
                to("GET https://a/http/x HTTP/1.1", "Host: a\r\n"),
                &[200],
                Open,
                &[("/x", "")],
            ),
            case(
                "an absolute target in capitals",
                to("GET HTTP://A:80/http/x HTTP/1.1", "Host: a\r\n"),
                &[200],
                Open,
                &[("/x", "")],
            ),
            case(
                "an absolute target of HTTP/1.0",
                to("GET http://a/http/x HTTP/1.0", ""),
                &[200],
                Closed,
                &[("/x", "")],
            ),
            case("an empty host", to("GET /http/x HTTP/1.1", "Host:\r\n"), &[200], Open, &[("/x", "")]),
            case(
                "an address and a port",
                to("GET /http/x HTTP/1.1", "Host: [::1]:80\r\n"),
                &[200],
                Open,
                &[("/x", "")],
            ),
            case("the server itself", to("OPTIONS * HTTP/1.1", "Host: a\r\n"), &[404], Open, &[]),
            refused_with("CONNECT", to("CONNECT a:80 HTTP/1.1", "Host: a:80\r\n"), &[501]),
            refused_with("CONNECT with a path", to("CONNECT /http/x HTTP/1.1", "Host: a\r\n"), &[501]),
            refused("an authority for another method", to("GET a:80 HTTP/1.1", "Host: a\r\n")),
            refused("a star for another method", to("GET * HTTP/1.1", "Host: a\r\n")),
            refused("a target without a slash", to("GET http/x HTTP/1.1", "Host: a\r\n")),
            refused("another scheme", to("GET ftp://a/http/x HTTP/1.1", "Host: a\r\n")),
            refused("a scheme that is none", to("GET ://a/http/x HTTP/1.1", "Host: a\r\n")),
            refused("a user in the target", to("GET http://u@a/http/x HTTP/1.1", "Host: a\r\n")),
            refused("an absolute target without a host", to("GET http:///http/x HTTP/1.1", "Host: a\r\n")),
            refused("no host", to("GET /http/x HTTP/1.1", "")),
            refused("no host beside an absolute target", to("GET http://a/http/x HTTP/1.1", "")),
            refused("two hosts", to("GET /http/x HTTP/1.1", "Host: a\r\nHost: b\r\n")),
            refused("a host twice", to("GET /http/x HTTP/1.1", "Host: a\r\nHost: a\r\n")),
            refused(
                "two hosts beside an absolute target",
                to("GET http://a/http/x HTTP/1.1", "Host: a\r\nHost: b\r\n"),
            ),
            refused("two hosts of HTTP/1.0", to("GET /http/x HTTP/1.0", "Host: a\r\nHost: b\r\n")),
            refused("a host with a blank", to("GET /http/x HTTP/1.1", "Host: a b\r\n")),
            refused("a list of hosts with a path", to("GET /http/x HTTP/1.1", "Host: a/b\r\n")),
            refused("a host with a user", to("GET /http/x HTTP/1.1", "Host: u@a\r\n")),
            refused("a host with a port that is none", to("GET /http/x HTTP/1.1", "Host: a:b\r\n")),
        ],
    )
    .await;
}

#[tokio::test]
async fn sizes_of_heads_have_limits() {
    let lines = |count: usize| with(&"X: 1\r\n".repeat(count));
    let target = |length: usize| format!("GET /http/{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(length));
    let small = GatewayConfig { max_headers: 20, max_head_bytes: 8192, ..config() };
    hold(
        small,
        vec![
            case("as many lines as may be", lines(19), &[200], Open, &[("/x", "")]),
            refused_with("one line more", lines(20), &[431]),
            refused_with("a long line", with(&format!("X: {}\r\n", "x".repeat(9000))), &[431]),
            refused_with("a long target", target(9000), &[431]),
        ],
    )
    .await;
    hold(config(), vec![refused_with("a line more than is usual", lines(100), &[431])]).await;
    let large = GatewayConfig { max_head_bytes: 1024 * 1024, ..config() };
    hold(large, vec![refused_with("a target longer than any", target(70_000), &[414])]).await;
}

#[tokio::test]
async fn connections_are_kept_and_closed_as_their_version_and_their_callers_say() {
    hold(
        config(),
        vec![
            case("HTTP/1.1", with(""), &[200], Open, &[("/x", "")]),
            case("HTTP/1.1 that closes", with("Connection: close\r\n"), &[200], Closed, &[("/x", "")]),
            case(
                "HTTP/1.1 that closes in a second line",
                with("Connection: x\r\nConnection: foo , Close\r\n"),
                &[200],
                Closed,
                &[("/x", "")],
            ),
            case("HTTP/1.0", "GET /http/x HTTP/1.0\r\n\r\n", &[200], Closed, &[("/x", "")]),
            case(
                "HTTP/1.0 kept",
                "GET /http/x HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
                &[200],
                Open,
                &[("/x", "")],
            ),
            case(
                "HTTP/1.0 with a body",
                "POST /http/x HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi",
                &[200],
                Closed,
                &[("/x", "hi")],
            ),
            case(
                "three at once, one with a body",
                format!("{}{}{}", with(""), post("Content-Length: 2", "hi"), with("")),
                &[200, 200, 200],
                Open,
                &[("/x", ""), ("/x", "hi"), ("/x", "")],
            ),
            case(
                "three at once, one that finds no way",
                format!(
                    "{}POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi{}",
                    with(""),
                    chunked("2\r\nhi\r\n0\r\n\r\n")
                ),
                &[200, 404, 200],
                Open,
                &[("/x", ""), ("/x", "hi")],
            ),
            case(
                "three at once, one malformed",
                format!("{}{}{}", with(""), post("Content-Length: x", "hi"), with("")),
                &[200, 400],
                Closed,
                &[("/x", "")],
            ),
            case(
                "nothing behind one that closes",
                format!("{}{}", with("Connection: close\r\n"), with("")),
                &[200],
                Closed,
                &[("/x", "")],
            ),
        ],
    )
    .await;
}
