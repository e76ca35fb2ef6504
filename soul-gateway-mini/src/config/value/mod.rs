//! Types of the settings' values: each reads its text once and says what it accepts.
//!
//! A flag, an environment variable and a string in the file go through the same [`FromStr`](std::str::FromStr), so the three
//! accept the same texts and refuse the rest in the same words.

use std::fmt;

/// Reads and writes a value in the file as the text its `FromStr` and `Display` speak.
macro_rules! text_value {
    ($type:ty, $expecting:literal) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_any(Visitor)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

/// Reads a value in the file as a number, by its `from_number`, or as the text its `FromStr` speaks; writes it as that text.
macro_rules! number_value {
    ($type:ty, $expecting:literal) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
                        <$type>::from_number(value).map_err(E::custom)
                    }

                    #[allow(clippy::cast_precision_loss)] // what does not fit is out of range anyway
                    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
                        self.visit_f64(value as f64)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_any(Visitor)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

mod address;
mod choice;
mod list;
mod log;
mod number;
mod secret;
mod share;
mod text;
mod time;

pub(super) use address::{AdminUrl, ListenAddr, ProxyNetwork};
pub(super) use choice::{Choice, Named};
pub(super) use list::{any_number, one_or_many};
pub use log::{LogFilter, LogFormat};
pub(super) use number::AtLeast;
pub(super) use secret::{Password, Token};
pub(super) use share::RetryShare;
pub(super) use text::{DataPlace, FileName, Word};
pub(super) use time::{Interval, Seconds};

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

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    /// What is said of a text that is no value.
    pub(super) fn refusal<T: FromStr<Err = BadValue> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().expect_err(text).to_string()
    }
}
