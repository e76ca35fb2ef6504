//! WebSockets over HTTP/2, where a stream becomes the tunnel (RFC 8441): the request is made the handshake that it would be
//! over HTTP/1.1, and the answer to that is made what ends it here.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE},
};
use hyper::ext::Protocol;

const WEBSOCKET: &str = "websocket";

/// What of a handshake has no meaning over HTTP/2.
const OF_HTTP_1: [HeaderName; 3] = [CONNECTION, UPGRADE, SEC_WEBSOCKET_ACCEPT];

/// Makes the request for a WebSocket a handshake; says whether it is one.
pub(super) fn is_asked<B>(request: &mut Request<B>) -> bool {
    let asked = *request.method() == Method::CONNECT
        && request.extensions().get::<Protocol>().is_some_and(|protocol| protocol.as_str() == WEBSOCKET);
    if asked {
        *request.method_mut() = Method::GET;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        if !headers.contains_key(SEC_WEBSOCKET_KEY)
            && let Ok(key) = HeaderValue::from_str(&key())
        {
            headers.insert(SEC_WEBSOCKET_KEY, key);
        }
    }
    asked
}

/// The key shows that the other side has understood the question, and is no secret.
fn key() -> String {
    let mut bytes = [0; 16];
    fastrand::fill(&mut bytes);
    STANDARD.encode(bytes)
}

/// Makes the answer to a handshake that of HTTP/2, where a success begins the tunnel.
pub(super) fn answer<B>(response: &mut Response<B>) {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        *response.status_mut() = StatusCode::OK;
        for name in OF_HTTP_1 {
            response.headers_mut().remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_connect_of_a_websocket_is_a_handshake() {
        let with = |method: Method, protocol: Option<&'static str>| {
            let mut request = Request::new(());
            *request.method_mut() = method;
            if let Some(protocol) = protocol {
                request.extensions_mut().insert(Protocol::from_static(protocol));
            }
            let asked = is_asked(&mut request);
            assert_eq!(asked, request.headers().contains_key(UPGRADE));
            asked.then_some(request)
        };
        for (method, protocol) in [
            (Method::CONNECT, None),
            (Method::CONNECT, Some("connect-udp")),
            (Method::GET, Some(WEBSOCKET)),
            (Method::GET, None),
        ] {
            assert!(with(method, protocol).is_none());
        }
        let [one, other] = [(); 2].map(|()| with(Method::CONNECT, Some(WEBSOCKET)).unwrap());
        let [one, other] =
            [&one, &other].map(|request| request.headers()[SEC_WEBSOCKET_KEY].to_str().unwrap());
        assert_eq!(STANDARD.decode(one).unwrap().len(), 16);
        assert_ne!(one, other);
    }
}
