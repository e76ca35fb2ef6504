//! One of a few names.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::BadValue;
use crate::config::layer::Written;

/// A type with a name for each of its values.
pub(in crate::config) trait Named: Copy + PartialEq + 'static {
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
pub(in crate::config) struct Choice<T>(pub(in crate::config) T);

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
