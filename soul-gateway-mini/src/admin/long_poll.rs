//! `POST /configs/listener`: waits until a group is not the one the gateway has (specification, section 10.2).
//!
//! Thousands of gateways wait here at once, so a waiting poll holds five checksums and a timer, and nothing of the
//! request. It looks at the groups only after it has subscribed to their changes, so a change in between
//! is seen. When the gateway goes away the connection drops the wait.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header},
};
use bytes::Bytes;
use hyper::body::Incoming;
use soul_client::wire::soul::ConfigGroup;
use tokio::time::{Instant, sleep_until};
use url::form_urlencoded;

use super::{
    answer::{SOUL_FAILURE, failure, response},
    body::{self, BodyError},
    metrics::{Metrics, Polled},
    shared::Shared,
};
use crate::model::ConfigImage;

/// Number of groups.
const GROUPS: usize = ConfigGroup::ALL.len();

/// The checksum of each group that a gateway has, in the order of [`ConfigGroup::ALL`].
type Checksums = [Box<str>; GROUPS];

/// Answers one poll.
pub(crate) async fn listener(shared: Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    let checksums = match read(&shared, request).await {
        Ok(checksums) => checksums,
        Err(refused) => {
            shared.metrics.polled(Polled::Refused);
            return refused;
        }
    };
    let mut held = Held::new(&shared.metrics);
    let changed = wait(&shared, &checksums).await;
    held.outcome = if changed == Changed::default() { Polled::Unchanged } else { Polled::Changed };
    changed.answer()
}

/// Waits until a group differs, the hold time is over, or the admin stops.
async fn wait(shared: &Shared, checksums: &Checksums) -> Changed {
    let mut images = shared.store.image();
    let until = sleep_until(Instant::now() + shared.config().poll_hold);
    tokio::pin!(until);
    loop {
        // What comes after this look is signalled: first subscribed, then compared.
        let changed = Changed::between(checksums, &images.borrow_and_update());
        if changed != Changed::default() || until.is_elapsed() {
            return changed;
        }
        tokio::select! {
            more = images.changed() => if more.is_err() { return Changed::default() },
            () = until.as_mut() => {}
            () = shared.stopping.cancelled() => return Changed::default(),
        }
    }
}

/// The groups that differ, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changed(u8);

impl Changed {
    /// Soul asks for the time of an unequal group too, and reloads if the gateway's is newer than its own. Here the
    /// groups are never older than the store, so the checksum alone decides.
    fn between(checksums: &Checksums, image: &ConfigImage) -> Self {
        let differs = |group: &ConfigGroup| *checksums[*group as usize] != *image.group(*group).md5;
        Self(ConfigGroup::ALL.into_iter().filter(differs).fold(0, |bits, group| bits | 1 << group as u8))
    }

    /// The answer; Soul's ends with a line break.
    fn answer(self) -> Response<Body> {
        let names: Vec<String> = ConfigGroup::ALL
            .into_iter()
            .filter(|group| self.0 & 1 << *group as u8 != 0)
            .map(|group| format!("\"{group}\""))
            .collect();
        let text = format!("{{\"code\":200,\"message\":\"success\",\"data\":[{}]}}\n", names.join(","));
        let mut response = response(StatusCode::OK, "application/json", Bytes::from(text));
        let headers = response.headers_mut();
        for (name, value) in [
            (header::PRAGMA, "no-cache"),
            (header::EXPIRES, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (header::CACHE_CONTROL, "no-cache,no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Counts a poll while it is held.
struct Held<'a> {
    metrics: &'a Metrics,
    /// Gone, unless the wait came to its end.
    outcome: Polled,
}

impl<'a> Held<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.polls_held.inc();
        Self { metrics, outcome: Polled::Gone }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.metrics.polls_held.dec();
        self.metrics.polled(self.outcome);
    }
}

/// Reads a poll; the request is gone when it returns.
async fn read(shared: &Shared, request: Request<Incoming>) -> Result<Checksums, Response<Body>> {
    let (parts, body) = request.into_parts();
    let too_much = |e: BodyError| failure(e.status(), SOUL_FAILURE, &e.to_string());
    let config = &shared.config();
    let form = body::read(body, config.body_limit, config.body_timeout).await.map_err(too_much)?;
    let checksums = checksums(&parts.uri, &form).map_err(|value| {
        // Soul answers its own errors with status 200.
        failure(StatusCode::OK, SOUL_FAILURE, &format!("group param invalid:{value}"))
    })?;
    tracing::debug!(client = client(&parts.headers), "poll");
    Ok(checksums)
}

/// The checksum of every group: a parameter each, `<md5>,<time>`, in the form or in the query.
///
/// Fails with the first value that is none; a missing one is called `null`, as in Soul.
fn checksums(uri: &Uri, form: &[u8]) -> Result<Checksums, String> {
    let mut checksums: Checksums = Default::default();
    for group in ConfigGroup::ALL {
        let named = |(name, _): &(_, _)| *name == group.as_str();
        let query = uri.query().unwrap_or_default().as_bytes();
        let value = form_urlencoded::parse(query).chain(form_urlencoded::parse(form)).find(named);
        let value = value.map_or_else(|| "null".to_owned(), |(_, value)| value.into_owned());
        // Java's split drops empty parts. The time is not looked at: the checksum decides.
        let parts: Vec<&str> = value.split(',').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            [md5, _time] => checksums[group as usize] = (*md5).into(),
            _ => return Err(value),
        }
    }
    Ok(checksums)
}

/// The address that Soul logs: what a proxy says, else nothing of interest.
fn client(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    text("x-forwarded-for")
        .and_then(|list| list.split(',').next())
        .or_else(|| text("x-real-ip"))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{
        config::AdminConfig,
        store::{Command, Edit, PluginPatch},
    };

    const FORM: &str = "APP_AUTH=a%2C1&PLUGIN=b%2C2&RULE=c%2C3&SELECTOR=d%2C4&META_DATA=e%2Cx&OTHER=1";

    #[test]
    fn five_groups_are_read() {
        let found = checksums(&Uri::from_static("/configs/listener"), FORM.as_bytes()).unwrap();
        assert_eq!(found.map(String::from), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn bad_values_are_named_as_soul_names_them() {
        for (from, to, named) in [
            ("RULE=c%2C3&", "", "null"),
            ("RULE=c%2C3", "RULE=", ""),
            ("RULE=c%2C3", "RULE=%2C0", ",0"),
            ("RULE=c%2C3", "RULE=c", "c"),
            ("RULE=c%2C3", "RULE=c%2C3%2C4", "c,3,4"),
        ] {
            let form = FORM.replace(from, to);
            let refused = checksums(&Uri::from_static("/configs/listener"), form.as_bytes());
            assert_eq!(refused.unwrap_err(), named, "{to}");
        }
        let double = FORM.replace("c%2C3", "c%2C%2C3");
        assert!(checksums(&Uri::from_static("/"), double.as_bytes()).is_ok(), "empty parts are dropped");
    }

    #[test]
    fn parameters_may_stand_in_the_query() {
        let uri: Uri = format!("/configs/listener?{FORM}").parse().unwrap();
        assert!(checksums(&uri, b"").is_ok());
    }

    fn all_of(image: &ConfigImage) -> Checksums {
        ConfigGroup::ALL.map(|group| image.group(group).md5.as_str().into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_poll_is_held_for_a_minute_whatever_is_dated_anew() {
        let shared = Shared::for_test(AdminConfig::default());
        let checksums = all_of(&shared.store.image().borrow());
        let dating = async {
            for _ in 0..5 {
                tokio::time::sleep(std::time::Duration::from_secs(10)).await;
                shared.store.refresh().await;
            }
        };
        let started = Instant::now();
        let (changed, ()) = tokio::join!(wait(&shared, &checksums), dating);
        assert_eq!((changed, started.elapsed()), (Changed::default(), shared.config().poll_hold));
    }

    #[tokio::test(start_paused = true)]
    async fn a_poll_ends_with_a_change_and_with_the_admin() {
        let shared = Shared::for_test(AdminConfig::default());
        let checksums = all_of(&shared.store.image().borrow());
        let patch = PluginPatch { enabled: Some(true), config: None };
        let change = shared.store.submit(Command::Edit(Edit::Plugin("1".to_owned(), patch)));
        let started = Instant::now();
        let (changed, applied) = tokio::join!(wait(&shared, &checksums), change);
        assert!(applied.is_ok() && started.elapsed() < shared.config().poll_hold);
        assert_eq!(changed, Changed(1 << ConfigGroup::Plugin as u8));

        let checksums = all_of(&shared.store.image().borrow());
        let stop = async { shared.stopping.cancel() };
        let (changed, ()) = tokio::join!(wait(&shared, &checksums), stop);
        assert_eq!((changed, started.elapsed().is_zero()), (Changed::default(), true));
    }

    #[test]
    fn answer_is_soul_s() {
        let response = Changed(1 << ConfigGroup::Selector as u8 | 1 << ConfigGroup::Rule as u8).answer();
        let headers = response.headers();
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["pragma"], "no-cache");
        assert_eq!(headers["expires"], "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(headers["cache-control"], "no-cache,no-store");
    }
}
