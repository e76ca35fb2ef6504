//! Types of the settings' values: each reads its text once and says what it accepts.
//!
//! A flag, an environment variable and a string in the file go through the same [`FromStr`], so the three
//! accept the same texts and refuse the rest in the same words.

use std::{
    fmt,
    marker::PhantomData,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use url::Url;

use super::layer::Written;
use crate::{
    admin::{self, ApiToken, DataDir},
    gateway::Network,
};

/// Longest time a setting takes: more is surely a slip of the unit (milliseconds for seconds).
const MAX_SECONDS: f64 = 31_536_000.0;

/// Shortest time a setting takes, besides 0 where that means off: timers are no finer, and an interval of less keeps
/// a processor busy with nothing else.
const MIN_TIME: Duration = Duration::from_millis(1);

/// Why a text is no value for a setting: what was expected, in words for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue(String);

impl BadValue {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadValue {}

/// Reads and writes a value in the file as the text its [`FromStr`] and [`Display`](fmt::Display) speak.
macro_rules! text_value {
    ($type:ty, $expecting:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl de::Visitor<'_> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_any(Visitor)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

/// Address and port to listen on; port 0 takes a free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListenAddr(pub(super) SocketAddr);

impl FromStr for ListenAddr {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        text.parse().map(Self).map_err(|_| BadValue(format!("expected `IP:PORT`, {}", address_hint(text))))
    }
}

/// What is wrong with an address that is no `IP:PORT`: the likeliest slip, or two examples.
fn address_hint(text: &str) -> String {
    let examples = "such as `127.0.0.1:9095`, `0.0.0.0:0` or `[::1]:9095`";
    if text.contains("://") {
        return format!("without a scheme, {examples}");
    }
    if text.parse::<IpAddr>().is_ok() {
        return format!("the port is missing; {examples}");
    }
    match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_err() && !host.is_empty() => {
            format!("where the port is 0 (any free one) to 65535; {examples}")
        }
        Some(("", port)) => format!("the address is missing; write `0.0.0.0:{port}` for every interface"),
        Some(("localhost", port)) => format!("not a name; write `127.0.0.1:{port}`"),
        _ => examples.to_owned(),
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_value!(ListenAddr, "a string `IP:PORT`, such as \"127.0.0.1:9095\"");

impl Written<SocketAddr> for ListenAddr {
    fn write(field: &SocketAddr) -> Self {
        Self(*field)
    }

    fn read(self) -> SocketAddr {
        self.0
    }
}

/// A length of time above zero, written in seconds; fractions are fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) Duration);

impl Seconds {
    fn from_number(number: f64) -> Result<Self, BadValue> {
        let duration = duration(number)?;
        if duration.is_zero() {
            return Err(BadValue::new("expected more than 0 seconds"));
        }
        Ok(Self(duration))
    }
}

/// A length of time written in seconds, where 0 means off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval(pub(super) Duration);

impl Interval {
    fn from_number(number: f64) -> Result<Self, BadValue> {
        duration(number).map(Self)
    }
}

/// Seconds as a duration; refuses what is negative, no number, or beyond [`MAX_SECONDS`].
fn duration(number: f64) -> Result<Duration, BadValue> {
    if !(0.0..=MAX_SECONDS).contains(&number) {
        return Err(BadValue(format!("expected seconds from 0 to {MAX_SECONDS} (a year)")));
    }
    let duration = Duration::try_from_secs_f64(number).map_err(|e| BadValue(e.to_string()))?;
    // Also what rounds to zero: it would mean off, which is not what was written.
    if number > 0.0 && duration < MIN_TIME {
        return Err(BadValue(format!("expected at least {} seconds", MIN_TIME.as_secs_f64())));
    }
    Ok(duration)
}

fn number(text: &str) -> Result<f64, BadValue> {
    text.parse()
        .map_err(|_| BadValue::new("expected a number of seconds without a unit, such as `10` or `0.5`"))
}

/// A number in the file, or a text; the same type reads both.
macro_rules! seconds_value {
    ($type:ty, $expecting:literal) => {
        impl FromStr for $type {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                Self::from_number(number(text)?)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl de::Visitor<'_> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
                        <$type>::from_number(value).map_err(E::custom)
                    }

                    #[allow(clippy::cast_precision_loss)] // what does not fit is out of range anyway
                    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                        self.visit_f64(value as f64)
                    }

                    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
                        value.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_any(Visitor)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

impl Written<Duration> for Seconds {
    fn write(field: &Duration) -> Self {
        Self(*field)
    }

    fn read(self) -> Duration {
        self.0
    }
}

impl Written<Duration> for Interval {
    fn write(field: &Duration) -> Self {
        Self(*field)
    }

    fn read(self) -> Duration {
        self.0
    }
}

seconds_value!(Seconds, "a number of seconds above 0");
seconds_value!(Interval, "a number of seconds, 0 for off");

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}

/// Base address of an admin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdminUrl(pub(super) Url);

impl FromStr for AdminUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let text = text.trim();
        if !text.contains("://") {
            return Err(BadValue(format!("the scheme is missing; write `http://{text}`")));
        }
        let url = Url::parse(text).map_err(|e| BadValue(format!("{e}; {URL_EXAMPLE}")))?;
        if url.scheme() != "http" {
            return Err(BadValue(format!("scheme `{}` is not supported; {URL_EXAMPLE}", url.scheme())));
        }
        if url.host().is_none() || url.query().is_some() || url.fragment().is_some() {
            return Err(BadValue::new(URL_EXAMPLE));
        }
        Ok(Self(url))
    }
}

const URL_EXAMPLE: &str = "expected `http://HOST:PORT`, such as `http://10.0.0.7:9095`";

impl fmt::Display for AdminUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

text_value!(AdminUrl, "a string `http://HOST:PORT`, such as \"http://10.0.0.7:9095\"");

impl Written<Url> for AdminUrl {
    fn write(field: &Url) -> Self {
        Self(field.clone())
    }

    fn read(self) -> Url {
        self.0
    }
}

/// Where data is kept: a folder, or `memory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataPlace(pub(super) DataDir);

impl FromStr for DataPlace {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text.is_empty() {
            return Err(BadValue::new("expected a folder, or `memory`"));
        }
        let Ok(data_dir) = text.parse();
        Ok(Self(data_dir))
    }
}

impl fmt::Display for DataPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Written<DataDir> for DataPlace {
    fn write(field: &DataDir) -> Self {
        Self(field.clone())
    }

    fn read(self) -> DataDir {
        self.0
    }
}

text_value!(DataPlace, "a string: a folder, or \"memory\"");

/// Proxies that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProxyNetwork(Network);

impl FromStr for ProxyNetwork {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        text.parse()
            .map(Self)
            .map_err(|_| BadValue::new("expected an address or a range such as `10.0.0.0/8`"))
    }
}

impl fmt::Display for ProxyNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Written<Network> for ProxyNetwork {
    fn write(field: &Network) -> Self {
        Self(*field)
    }

    fn read(self) -> Network {
        self.0
    }
}

text_value!(ProxyNetwork, "a string, such as \"10.0.0.0/8\"");

/// What is logged: a level, or `tracing` directives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(pub String);

impl FromStr for LogFilter {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = || {
            BadValue::new(
                "expected `off`, `error`, `warn`, `info`, `debug`, `trace`, or a list of \
                 `target=level`, such as `info,soul_gateway_mini::sync=debug`",
            )
        };
        let levels =
            text.split(',').map(|part| part.rsplit_once('=').map_or(part, |(_, level)| level).trim());
        for level in levels {
            if level.is_empty() || level.parse::<tracing_subscriber::filter::LevelFilter>().is_err() {
                return Err(bad());
            }
        }
        tracing_subscriber::EnvFilter::try_new(text).map_err(|_| bad())?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_value!(LogFilter, "a string: a level, or a list of `target=level`");

/// A value that is one of a few names, known to clap as a [`ValueEnum`](clap::ValueEnum).
macro_rules! named_value {
    ($type:ty, $expecting:literal) => {
        impl FromStr for $type {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                <Self as clap::ValueEnum>::from_str(text, false)
                    .map_err(|_| BadValue::new(concat!("expected ", $expecting)))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                use clap::ValueEnum as _;
                self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
            }
        }

        text_value!($type, $expecting);
    };
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere
    Auto,
    /// One line of text an event
    Text,
    /// One JSON object an event
    Json,
}

named_value!(LogFormat, "`auto`, `text` or `json`");

/// Values that the parts use as they are written.
macro_rules! used_as_written {
    ($($type:ty),+) => {
        $(impl Written<Self> for $type {
            fn write(field: &Self) -> Self {
                field.clone()
            }

            fn read(self) -> Self {
                self
            }
        })+
    };
}
used_as_written!(LogFilter, LogFormat);

/// A type with a name for each of its values.
pub(super) trait Named: Copy + PartialEq + 'static {
    /// Every value with its name, in the order in which they are explained.
    fn names() -> Vec<(&'static str, Self)>;
}

impl Named for bool {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("true", true), ("false", false)]
    }
}

/// One of a part's own choices, read by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice<T>(pub(super) T);

impl<T: Named> FromStr for Choice<T> {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let names = T::names();
        if let Some((_, value)) = names.iter().find(|(name, _)| *name == text) {
            return Ok(Self(*value));
        }
        let names: Vec<_> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
        Err(BadValue(format!("expected {}", names.join(" or "))))
    }
}

impl<T: Named> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::names().iter().find(|(_, value)| *value == self.0).map_or(Ok(()), |(name, _)| f.write_str(name))
    }
}

impl<'de, T: Named> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        impl<T: Named> de::Visitor<'_> for Visitor<T> {
            type Value = Choice<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<_> = T::names().iter().map(|(name, _)| format!("`{name}`")).collect();
                f.write_str(&names.join(" or "))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
                self.visit_str(if value { "true" } else { "false" })
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<T: Named> Serialize for Choice<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<T: Copy> Written<T> for Choice<T> {
    fn write(field: &T) -> Self {
        Self(*field)
    }

    fn read(self) -> T {
        self.0
    }
}

/// A secret; `Debug` does not show it, and it is never written.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(pub(super) ApiToken);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for Token {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text.trim().is_empty() {
            return Err(BadValue::new("expected a text that is not blank; leave it out to have no token"));
        }
        Ok(Self(ApiToken::new(text)))
    }
}

text_value!(Token, "a string");

/// A password: the text as it is, but for the one line end that a file has at its end. `Debug` does not show it, and
/// it is never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Password(pub(super) admin::Password);

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for Password {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        let password = line.strip_suffix('\r').unwrap_or(line);
        if password.is_empty() {
            return Err(BadValue::new(
                "expected a text that is not empty; leave it out to ask for no password",
            ));
        }
        Ok(Self(admin::Password::new(password)))
    }
}

text_value!(Password, "a string");

/// A text that is not blank, without the white space around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word(String);

impl FromStr for Word {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.trim() {
            "" => Err(BadValue::new("expected a text that is not blank")),
            word => Ok(Self(word.to_owned())),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_value!(Word, "a string");

impl Written<String> for Word {
    fn write(field: &String) -> Self {
        Self(field.clone())
    }

    fn read(self) -> String {
        self.0
    }
}

/// A whole number that must not be below `MIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct AtLeast<const MIN: usize>(pub(super) usize);

impl<const MIN: usize> FromStr for AtLeast<MIN> {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.parse() {
            Ok(number) if number >= MIN => Ok(Self(number)),
            _ => Err(BadValue(format!("expected a whole number, at least {MIN}"))),
        }
    }
}

impl<'de, const MIN: usize> Deserialize<'de> for AtLeast<MIN> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<const MIN: usize>;

        impl<const MIN: usize> de::Visitor<'_> for Visitor<MIN> {
            type Value = AtLeast<MIN>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number, at least {MIN}")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                value.to_string().parse().map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
                value.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl<const MIN: usize> Written<usize> for AtLeast<MIN> {
    fn write(field: &usize) -> Self {
        Self(*field)
    }

    fn read(self) -> usize {
        self.0
    }
}

/// Reads one value or an array of them.
pub(super) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + FromStr<Err = BadValue>,
{
    match any_number(deserializer)? {
        Some(values) if values.is_empty() => Err(de::Error::custom("expected at least one")),
        values => Ok(values),
    }
}

/// Reads one value or an array of them, which may be empty.
pub(super) fn any_number<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + FromStr<Err = BadValue>,
{
    struct Visitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de> + FromStr<Err = BadValue>> de::Visitor<'de> for Visitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or an array of strings")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            text.split(',').map(|part| part.parse().map_err(E::custom)).collect()
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut values = Vec::new();
            while let Some(value) = seq.next_element()? {
                values.push(value);
            }
            Ok(values)
        }
    }

    deserializer.deserialize_any(Visitor(PhantomData)).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: FromStr<Err = BadValue> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().expect_err(text).to_string()
    }

    #[test]
    fn listen_address_is_ip_and_port() {
        for text in ["127.0.0.1:9095", "0.0.0.0:0", "[::1]:65535"] {
            assert_eq!(text.parse::<ListenAddr>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn listen_address_refusals_name_the_slip() {
        for (text, hint) in [
            ("127.0.0.1", "port is missing"),
            ("127.0.0.1:65536", "0 (any free one) to 65535"),
            ("127.0.0.1:-1", "0 (any free one) to 65535"),
            (":9095", "write `0.0.0.0:9095`"),
            ("localhost:9095", "write `127.0.0.1:9095`"),
            ("http://127.0.0.1:9095", "without a scheme"),
            ("", "such as `127.0.0.1:9095`"),
        ] {
            let message = refusal::<ListenAddr>(text);
            assert!(message.contains(hint), "`{text}`: {message}");
        }
    }

    #[test]
    fn seconds_take_fractions_and_refuse_zero() {
        assert_eq!("0.25".parse(), Ok(Seconds(Duration::from_millis(250))));
        assert_eq!("3".parse(), Ok(Seconds(Duration::from_secs(3))));
        assert!(refusal::<Seconds>("0").contains("more than 0"));
    }

    #[test]
    fn interval_of_zero_is_off() {
        assert_eq!("0".parse(), Ok(Interval(Duration::ZERO)));
        assert_eq!("0.5".parse(), Ok(Interval(Duration::from_millis(500))));
    }

    #[test]
    fn times_that_are_none_are_refused() {
        for text in ["-1", "NaN", "inf", "1e300", "31536001"] {
            assert!(refusal::<Interval>(text).contains("from 0 to 31536000"), "{text}");
        }
        for text in ["0.0009", "1e-9", "1e-300"] {
            assert!(refusal::<Interval>(text).contains("at least 0.001"), "{text}");
            assert!(refusal::<Seconds>(text).contains("at least 0.001"), "{text}");
        }
        assert_eq!("0.001".parse(), Ok(Interval(Duration::from_millis(1))));
        for text in ["10s", "500ms", "", "ten"] {
            assert!(refusal::<Seconds>(text).contains("without a unit"), "{text}");
        }
    }

    #[test]
    fn admin_address_needs_scheme_and_host() {
        assert_eq!("http://10.0.0.7:9095/".parse::<AdminUrl>().unwrap().to_string(), "http://10.0.0.7:9095");
        assert!(refusal::<AdminUrl>("10.0.0.7:9095").contains("write `http://10.0.0.7:9095`"));
        for text in
            ["https://10.0.0.7:9095", "ftp://x", "http://", "http://a:99999", "http://a/?x=1", "http://a/#x"]
        {
            assert!(refusal::<AdminUrl>(text).contains("expected `http://HOST:PORT`"), "{text}");
        }
    }

    #[test]
    fn log_filter_is_a_level_or_directives() {
        for text in ["info", "off", "warn,soul_gateway_mini::sync=debug"] {
            assert!(text.parse::<LogFilter>().is_ok(), "{text}");
        }
        for text in ["loud", "", "a=loud"] {
            assert!(refusal::<LogFilter>(text).contains("`target=level`"), "{text}");
        }
    }

    #[test]
    fn data_goes_to_memory_or_into_a_folder() {
        assert_eq!("memory".parse(), Ok(DataPlace(DataDir::Memory)));
        assert_eq!("/data".parse(), Ok(DataPlace(DataDir::Path("/data".into()))));
        assert!(refusal::<DataPlace>("").contains("`memory`"));
    }
}
