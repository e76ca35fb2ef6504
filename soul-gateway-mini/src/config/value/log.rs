//! What is logged, and how.

use std::{fmt, str::FromStr};

use super::BadValue;
use crate::config::layer::Written;

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

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;

    #[test]
    fn log_filter_is_a_level_or_directives() {
        for text in ["info", "off", "warn,soul_gateway_mini::sync=debug"] {
            assert!(text.parse::<LogFilter>().is_ok(), "{text}");
        }
        for text in ["loud", "", "a=loud"] {
            assert!(refusal::<LogFilter>(text).contains("`target=level`"), "{text}");
        }
    }
}
