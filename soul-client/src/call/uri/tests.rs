use super::*;

fn at(address: &str) -> Upstream {
    Upstream::new(address)
}

#[test]
fn the_example_of_ribbon_is_reconstructed() {
    let upstream = at("192.168.1.101:8088");
    assert_eq!(
        reconstruct_uri("http://ServerA/api/sayHello", &upstream).unwrap(),
        "http://192.168.1.101:8088/api/sayHello"
    );
}

#[test]
fn everything_behind_the_authority_stays_byte_for_byte() {
    for (request, uri) in [
        ("lb://orders", "http://h:1"),
        ("lb://orders/", "http://h:1/"),
        ("lb://orders?a=b", "http://h:1?a=b"),
        ("lb://orders#f", "http://h:1#f"),
        ("lb://orders/a/../b/./c//d", "http://h:1/a/../b/./c//d"),
        ("lb://orders/a%2Fb%2f%41", "http://h:1/a%2Fb%2f%41"),
        ("lb://orders/ä/\u{1F980}", "http://h:1/ä/\u{1F980}"),
        ("lb://orders/a?b=c%26d&&e=?/:@#f/?g", "http://h:1/a?b=c%26d&&e=?/:@#f/?g"),
        ("lb://orders/go?to=http://else/x@y", "http://h:1/go?to=http://else/x@y"),
        ("lb://orders/a;v=1,2|3\\4", "http://h:1/a;v=1,2|3\\4"),
        ("lb://user:p%40ss@orders/a", "http://user:p%40ss@h:1/a"),
        ("lb://a@b@orders/a", "http://a@b@h:1/a"),
        ("http://10.9.9.9:99/a", "http://h:1/a"),
        ("http://[::1]:99/a", "http://h:1/a"),
        ("/a?b", "http://h:1/a?b"),
        ("/go?to=http://else", "http://h:1/go?to=http://else"),
    ] {
        assert_eq!(reconstruct_uri(request, &at("h:1")).unwrap(), uri, "{request}");
    }
}

#[test]
fn scheme_is_that_of_the_upstream_else_of_the_request() {
    for (protocol, request, scheme) in [
        ("https://", "http://orders/a", "https"),
        ("http://", "https://orders/a", "http"),
        ("", "https://orders/a", "https"),
        ("", "http://orders/a", "http"),
        ("", "lb://orders/a", "http"),
        ("", "/a", "http"),
        ("ws://", "lb://orders/a", "ws"),
    ] {
        let upstream = at("h:1").with_protocol(protocol);
        let uri = reconstruct_uri(request, &upstream).unwrap();
        assert_eq!(uri, format!("{scheme}://h:1/a"), "{protocol} {request}");
        let uri = rewrite_uri(&request.parse().unwrap(), &upstream).unwrap();
        assert_eq!(uri.to_string(), format!("{scheme}://h:1/a"), "{protocol} {request}");
    }
}

#[test]
fn upstreams_may_be_ipv6_and_have_a_base_path() {
    for (address, uri) in [
        ("[2001:db8::1]:8080", "http://[2001:db8::1]:8080/a?b"),
        ("[::1]", "http://[::1]/a?b"),
        ("::1", "http://[::1]/a?b"),
        ("fe80::1:8080", "http://[fe80::1:8080]/a?b"),
        ("10.0.0.2:80/base", "http://10.0.0.2:80/base/a?b"),
        ("10.0.0.2:80/base/", "http://10.0.0.2:80/base/a?b"),
        ("10.0.0.2:80/", "http://10.0.0.2:80/a?b"),
        ("orders.internal", "http://orders.internal/a?b"),
    ] {
        assert_eq!(reconstruct_uri("lb://orders/a?b", &at(address)).unwrap(), uri);
        let rewritten = rewrite_uri(&"http://orders/a?b".parse().unwrap(), &at(address)).unwrap();
        assert_eq!(rewritten.to_string(), uri);
    }
    assert_eq!(reconstruct_uri("lb://orders", &at("h:1/base")).unwrap(), "http://h:1/base");
}

#[test]
fn a_request_of_the_crate_http_keeps_path_and_user() {
    for (request, uri) in [
        ("lb://orders/a/../b%2Fc?d=e", "http://h:1/a/../b%2Fc?d=e"),
        ("http://u:p@orders/a", "http://u:p@h:1/a"),
        ("/a//b?c", "http://h:1/a//b?c"),
    ] {
        let rewritten = rewrite_uri(&request.parse().unwrap(), &at("h:1")).unwrap();
        assert_eq!(rewritten.to_string(), uri);
    }
}

#[test]
fn errors_name_the_remedy() {
    for (text, remedy) in [
        ("orders/api", "has no scheme: write `lb://orders/api`"),
        ("/orders/api", "has no scheme: write `lb://orders/api`"),
        ("", "has no scheme: write `lb://`"),
        ("ftp://orders/a", "has the scheme `ftp`: write `lb://`, `http://` or `https://`"),
        ("lb:///api", "names no service: write it behind `lb://`, as in `lb://orders/api`"),
        (
            "lb://orders:8080/api",
            "has a port at the service `orders`: its upstreams have theirs, so drop `:8080`",
        ),
        (
            "lb://or%64ers/api",
            "names a service `or%64ers` with `%` in it: use letters, digits, `-`, `_` and `.`",
        ),
        ("lb://orders/a b", "has a blank in it: write `%20`"),
        ("lb://orders/a\nb", "has the character '\\n' in it: percent-encode it"),
    ] {
        let error = ServiceUri::parse(text).unwrap_err();
        assert_eq!(error.to_string(), format!("`{text}` {remedy}"));
        assert_eq!(error.uri(), text);
    }
    // Neither the text of a call nor an address may lead somebody else's way.
    for text in [
        r"lb://else.com\@orders/a",
        r"lb://orders\@else.com/a",
        r"http://orders\.else.com/",
        "@else.com/a",
        ":80@else.com/",
        "80/a",
        "a/b",
    ] {
        assert!(reconstruct_uri(text, &at("h:1")).is_err(), "{text}");
        assert!(ServiceUri::parse(text).is_err(), "{text}");
    }
    // A slash in a path is nobody's host.
    assert_eq!(reconstruct_uri(r"lb://orders/\else.com", &at("h:1")).unwrap(), r"http://h:1/\else.com");
    // What may be a password is not repeated.
    let error = ServiceUri::parse("lb://me:secret@orders:80/api").unwrap_err();
    assert!(error.to_string().starts_with("`lb://orders:80/api` has a port"), "{error}");
    for address in ["", "h:1/a?b", "h 1"] {
        assert!(reconstruct_uri("lb://orders/", &at(address)).is_err(), "{address}");
    }
}

#[test]
fn services_may_have_underscores_and_users() {
    let uri = ServiceUri::parse("LB://me@order_service.v2-a/api?x#y").unwrap();
    assert_eq!((uri.scheme(), uri.service(), uri.target()), ("LB", "order_service.v2-a", "/api?x#y"));
}
