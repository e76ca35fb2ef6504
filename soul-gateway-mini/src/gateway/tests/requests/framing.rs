//! Where the body of a request ends.

use super::{super::setup::config, Closed, Open, case, chunked, hold, post, refused, refused_with};

#[tokio::test]
async fn lengths_are_digits_and_one_number() {
    let length = |value: &str| post(&format!("Content-Length: {value}"), "hello");
    let mut cases = vec![
        case("plain", length("5"), &[200], Open, &[("/x", "hello")]),
        case("with zeros in front", length("005"), &[200], Open, &[("/x", "hello")]),
        case("with blanks around", length("  5\t"), &[200], Open, &[("/x", "hello")]),
        case("said twice", length("5\r\nContent-Length: 5"), &[200], Open, &[("/x", "hello")]),
        case(
            "of a GET",
            "GET /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
            &[200],
            Open,
            &[("/x", "hi")],
        ),
        case("none at all", post("X: 1", ""), &[200], Open, &[("/x", "")]),
        refused_with("more than can be counted", length("18446744073709551615"), &[431]),
    ];
    for value in [
        "+5",
        "-5",
        "5,5",
        "5, 6",
        "0x5",
        "5 5",
        "5;",
        "five",
        "",
        "18446744073709551616",
        "5\r\nContent-Length: 6",
    ] {
        cases.push(refused("not a length", length(value)));
    }
    hold(config(), cases).await;
}

#[tokio::test]
async fn chunked_is_the_only_transfer_coding_and_counts_more_than_a_length() {
    let coding = |value: &str| post(&format!("Transfer-Encoding: {value}"), "2\r\nhi\r\n0\r\n\r\n");
    let mut cases = vec![
        case("plain", coding("chunked"), &[200], Open, &[("/x", "hi")]),
        case("in capitals", coding("CHUNKED"), &[200], Open, &[("/x", "hi")]),
        case("with blanks around", coding("\t chunked \t"), &[200], Open, &[("/x", "hi")]),
        // RFC 9112, section 6.1: the connection ends after the answer.
        case("a length behind it", coding("chunked\r\nContent-Length: 5"), &[200], Closed, &[("/x", "hi")]),
        case(
            "a length in front of it",
            post("Content-Length: 5\r\nTransfer-Encoding: chunked", "2\r\nhi\r\n0\r\n\r\n"),
            &[200],
            Closed,
            &[("/x", "hi")],
        ),
        refused(
            "of HTTP/1.0",
            "POST /http/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
        refused("a blank in front of the colon", post("Transfer-Encoding : chunked", "0\r\n\r\n")),
    ];
    for value in [
        "chunked, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
        "gzip, chunked",
        "gzip\r\nTransfer-Encoding: chunked",
        "chunked\r\nTransfer-Encoding: identity",
        "chunked, gzip",
        "xchunked",
        "chunkedx",
        ",chunked",
        "chunked,",
        "chunked;q=1",
        "\"chunked\"",
        "identity",
        "gzip",
        "",
        "chunked\x0b",
    ] {
        cases.push(refused("another coding", coding(value)));
    }
    hold(config(), cases).await;
}

#[tokio::test]
async fn chunks_are_read_in_one_way_or_not_at_all() {
    let mut cases = vec![
        case("one by one", chunked("1\r\nh\r\n01\r\ni\r\n0\r\n\r\n"), &[200], Open, &[("/x", "hi")]),
        case(
            "a size in both cases",
            chunked("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"),
            &[200],
            Open,
            &[("/x", "01234567890123456789")],
        ),
        case("extensions", chunked("2;a=b;c=\"d\"\r\nhi\r\n0;e\r\n\r\n"), &[200], Open, &[("/x", "hi")]),
        case("trailers", chunked("2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n"), &[200], Open, &[("/x", "hi")]),
        case(
            "trailers that may not stand there",
            chunked("2\r\nhi\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: x\r\nHost: b\r\n\r\n"),
            &[200],
            Open,
            &[("/x", "hi")],
        ),
    ];
    let long = format!("2;{}\r\nhi\r\n0\r\n\r\n", "x".repeat(17_000));
    let many = format!("2\r\nhi\r\n0\r\n{}\r\n", "X: 1\r\n".repeat(200));
    for (name, body) in [
        ("no size", "\r\nhi\r\n0\r\n\r\n"),
        ("a size below zero", "-2\r\nhi\r\n0\r\n\r\n"),
        ("a size with a sign", "+2\r\nhi\r\n0\r\n\r\n"),
        ("a size with a prefix", "0x2\r\nhi\r\n0\r\n\r\n"),
        ("a size that is no number", "zz\r\nhi\r\n0\r\n\r\n"),
        ("a size with a blank in front", " 2\r\nhi\r\n0\r\n\r\n"),
        ("two sizes", "2 2\r\nhi\r\n0\r\n\r\n"),
        ("a size that cannot be counted", "10000000000000002\r\nhi\r\n0\r\n\r\n"),
        ("a size that ends in LF", "2\nhi\r\n0\r\n\r\n"),
        ("an extension with LF", "2;a\nb\r\nhi\r\n0\r\n\r\n"),
        ("an extension without an end", &long),
        ("more than the size", "2\r\nhix\r\n0\r\n\r\n"),
        ("less than the size", "3\r\nhi\r\n0\r\n\r\n"),
        ("LF behind a chunk", "2\r\nhi\n0\r\n\r\n"),
        ("nothing behind a chunk", "2\r\nhi0\r\n\r\n"),
        ("a trailer that is none", "2\r\nhi\r\n0\r\nno trailer\r\n\r\n"),
        ("a folded trailer", "2\r\nhi\r\n0\r\nX: 1\r\n y\r\n\r\n"),
        ("too many trailers", &many),
    ] {
        cases.push(refused(name, chunked(body)));
    }
    hold(config(), cases).await;
}
