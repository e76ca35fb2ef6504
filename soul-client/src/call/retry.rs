//! Whether and when a failed attempt is repeated. Arithmetic only: it sends nothing and reads no clock.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode, header::RETRY_AFTER};

use crate::balance::RandomSource;

/// Which requests may be repeated although an upstream may have acted on them.
///
/// Others are repeated only when they were surely not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Methods(Vec<Method>);

impl Methods {
    /// Those that are idempotent by RFC 9110: GET, HEAD, OPTIONS, TRACE, PUT and DELETE. The default.
    #[must_use]
    pub fn idempotent() -> Self {
        Self(vec![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE])
    }

    /// These and no others; of Ribbon it was GET.
    #[must_use]
    pub fn only(methods: impl IntoIterator<Item = Method>) -> Self {
        Self(methods.into_iter().collect())
    }

    /// Whether a method is among them.
    #[must_use]
    pub fn contains(&self, method: &Method) -> bool {
        self.0.contains(method)
    }

    /// All of them, in the order they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Method> {
        self.0.iter()
    }
}

impl Default for Methods {
    fn default() -> Self {
        Self::idempotent()
    }
}

/// Answers that count as a failed attempt, by their codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(Vec<StatusCode>);

impl Statuses {
    /// These and no others; none at all is fine.
    #[must_use]
    pub fn only(statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        Self(statuses.into_iter().collect())
    }

    /// Whether a code is among them.
    #[must_use]
    pub fn contains(&self, status: StatusCode) -> bool {
        self.0.contains(&status)
    }
}

/// 502, 503 and 504: somebody on the way says that the upstream did not do it.
impl Default for Statuses {
    fn default() -> Self {
        Self(vec![StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT])
    }
}

/// How retries are made; all of it can be set for a service and for one request.
#[doc(alias = "RetryHandler")]
#[doc(alias = "RequestSpecificRetryHandler")]
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Repeats at the same upstream. Default 0.
    #[doc(alias = "MaxAutoRetries")]
    pub same: u32,
    /// Further upstreams, each another one as long as there are others. Default 1.
    #[doc(alias = "MaxAutoRetriesNextServer")]
    pub next: u32,
    /// Requests that may be repeated although they may have been acted on. Default [`Methods::idempotent`].
    pub methods: Methods,
    /// Whether every method counts as one of them. Default false.
    #[doc(alias = "OkToRetryOnAllOperations")]
    pub all_methods: bool,
    /// Answers that are repeated. Default 502, 503 and 504.
    pub statuses: Statuses,
    /// Bound of the random pause before the first repeat; it doubles with each further one. Default 25 ms.
    pub backoff: Duration,
    /// Bound that doubling stops at. Default 250 ms.
    pub longest_backoff: Duration,
    /// Longest `Retry-After` that is waited for; a longer one ends the call with the answer as it is. Default 1 s.
    pub longest_retry_after: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            same: 0,
            next: 1,
            methods: Methods::default(),
            all_methods: false,
            statuses: Statuses::default(),
            backoff: Duration::from_millis(25),
            longest_backoff: Duration::from_millis(250),
            longest_retry_after: Duration::from_secs(1),
        }
    }
}

impl Retry {
    /// No repeats at all.
    #[must_use]
    pub fn never() -> Self {
        Self { same: 0, next: 0, ..Self::default() }
    }

    /// Most attempts there can be: `(same + 1) · (next + 1)`.
    #[must_use]
    pub fn most_attempts(&self) -> u64 {
        (u64::from(self.same) + 1) * (u64::from(self.next) + 1)
    }

    /// Whether a request may be repeated although it may have been acted on.
    #[must_use]
    pub fn repeats(&self, method: &Method) -> bool {
        self.all_methods || self.methods.contains(method)
    }

    /// The pause before a repeat: anywhere up to a bound that doubles, so that callers which failed together do not come back
    /// together (full jitter).
    ///
    /// - `repeat`: 0 before the first.
    #[must_use]
    pub fn pause(&self, repeat: u32, random: &dyn RandomSource) -> Duration {
        let bound = self.backoff.saturating_mul(1 << repeat.min(16)).min(self.longest_backoff);
        bound.mul_f64(f64::from(random.below(1 << 24)) / f64::from(1 << 24))
    }
}

/// How long an answer asks to be spared; seconds or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) {
        // More than there is room for is as long as can be.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = http_date(text)?;
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Duration::from_secs(at).saturating_sub(now))
}

/// Seconds since the epoch of the one form of a date that is still to be written, `Sun, 06 Nov 1994 08:49:37 GMT`. The two
/// obsolete forms say nothing, as if there were no header.
fn http_date(text: &str) -> Option<u64> {
    let (_, date) = text.split_once(", ")?;
    let mut words = date.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    if zone != "GMT" || words.next().is_some() {
        return None;
    }
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let mut parts = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days from 1970-01-01, in a calendar whose years begin in March so that the leap day is the last.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idempotent_methods_are_those_of_the_standard() {
        let retry = Retry::default();
        for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"] {
            assert!(retry.repeats(&method.parse().unwrap()), "{method}");
        }
        for method in ["POST", "PATCH", "CONNECT", "PURGE"] {
            assert!(!retry.repeats(&method.parse().unwrap()), "{method}");
        }
        assert!(Retry { all_methods: true, ..Retry::default() }.repeats(&Method::POST));
        assert!(!Retry { methods: Methods::only([Method::GET]), ..Retry::default() }.repeats(&Method::PUT));
    }

    #[test]
    fn attempts_are_the_product() {
        for (same, next, most) in [(0, 0, 1), (0, 1, 2), (1, 0, 2), (2, 3, 12), (u32::MAX, 0, 1 << 32)] {
            assert_eq!(Retry { same, next, ..Retry::default() }.most_attempts(), most);
        }
    }

    #[test]
    fn pauses_double_from_25_ms_and_jitter_fully() {
        let retry = Retry::default();
        let longest = |bound: u32| bound - 1;
        for (repeat, ms) in [(0, 25), (1, 50), (2, 100), (3, 200), (4, 250), (40, 250)] {
            let pause = retry.pause(repeat, &longest);
            assert!(pause <= Duration::from_millis(ms) && pause > Duration::from_millis(ms - 1), "{pause:?}");
            assert_eq!(retry.pause(repeat, &|_| 0), Duration::ZERO);
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 3 ", Some(3)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(86_400)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("1000000000000", Some(1_000_000_000_000)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799 - 784_111_777)),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", None),
            ("1.5", None),
            ("soon", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn dates_heed_leap_years() {
        for (date, days) in
            [((1970, 1, 1), 0), ((2000, 2, 29), 11_016), ((2000, 3, 1), 11_017), ((2026, 11, 30), 20_787)]
        {
            assert_eq!(days_since_epoch(date.0, date.1, date.2), days, "{date:?}");
        }
    }
}
