//! The head of a request for an upstream that speaks HTTP/2.

use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Uri,
    header::{CONTENT_LENGTH, MAX_FORWARDS, TE, VIA},
    uri::Scheme,
};

use super::super::headers::{Announced, Asked, Role};
use crate::{
    gateway::config::{Forwarded, HostHeader},
    sync::{Destination, Protocol},
};

impl Asked<'_> {
    /// The head for one upstream; `None` if no address can be told.
    pub(super) fn request(&self, destination: &Destination, target: &str) -> Option<Request<()>> {
        let host = match (self.host_header, self.host) {
            (HostHeader::Preserve, Some(host)) => host,
            _ => destination.host(),
        };
        let scheme = match destination.protocol() {
            Protocol::Https(_) => Scheme::HTTPS,
            Protocol::Http | Protocol::H2c => Scheme::HTTP,
        };
        let target = [destination.prefix(), target].concat();
        let uri = |host: &HeaderValue| {
            let uri = Uri::builder().scheme(scheme.clone()).authority(host.as_bytes());
            uri.path_and_query(&*target).build().ok()
        };
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri(host).or_else(|| uri(destination.host()))?;
        *request.headers_mut() = self.headers();
        Some(request)
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.said.headers.len() + 3);
        let named = self.named_by_connection();
        for (name, value) in self.said.headers {
            if Role::of(name) != Role::Expect && !self.ends_here(name) && !named.contains(name) {
                headers.append(name, value.clone());
            }
        }
        // Of one connection too, but what it says holds for the next one here: trailers pass.
        let takes_trailers = |value: &HeaderValue| {
            value.as_bytes().split(|byte| *byte == b',').any(|token| token.trim_ascii() == b"trailers")
        };
        if self.said.headers.get_all(TE).iter().any(takes_trailers) {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        if let Announced::Length(length) = self.body {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        self.tell_caller_in(&mut headers);
        if let Some(hops) = self.hops {
            headers.insert(MAX_FORWARDS, hops.into());
        }
        if let Some(via) = self.via {
            headers.append(VIA, via.clone());
        }
        headers
    }

    fn tell_caller_in(&self, headers: &mut HeaderMap) {
        if self.forwarded == Forwarded::Off {
            return;
        }
        const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
        let mut list = Vec::new();
        if self.forwarded == Forwarded::Append {
            for before in self.said.headers.get_all(FOR) {
                list.extend_from_slice(before.as_bytes());
                list.extend_from_slice(b", ");
            }
        }
        list.extend_from_slice(self.caller.as_bytes());
        // A list of values is a value.
        if let Ok(list) = HeaderValue::from_bytes(&list) {
            headers.insert(FOR, list);
        }
        let scheme = HeaderValue::from_static(if self.secure { "https" } else { "http" });
        headers.entry("x-forwarded-proto").or_insert(scheme);
        if let Some(host) = self.host {
            headers.entry("x-forwarded-host").or_insert_with(|| host.clone());
        }
    }
}
