//! Several values of one setting.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::{Deserialize, Deserializer, de};

use super::BadValue;

/// Reads one value or an array of them.
pub(in crate::config) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
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
pub(in crate::config) fn any_number<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
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
