//! Whole numbers.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de};

use super::BadValue;
use crate::config::layer::Written;

/// A whole number that must not be below `MIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::config) struct AtLeast<const MIN: usize>(pub(in crate::config) usize);

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
