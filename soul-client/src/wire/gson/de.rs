//! The tree, read as the types that want it, with Gson's conversions.
//!
//! What a `null` means depends on the wanted type: an empty string, `None`, or "keep the default". A serde
//! deserializer learns that type only when it is too late to leave the field out. So a `null` that turns out to set
//! nothing is marked in the tree, a stand-in is given, and the tree is read once more without it. One
//! more reading is enough unless a stand-in itself is refused; each reading marks at least one `null`, so it ends.

use std::cell::Cell;

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor, value::StrDeserializer},
    forward_to_deserialize_any,
};

use super::{
    access::{Elements, Fields},
    error::GsonError,
    number,
    read::{Meaning, Node, Null, parse},
};

/// What a `null` is where a string is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nulls {
    /// The empty string: the rule of Soul's `GsonUtils`.
    AsEmptyText,
    /// No string: the rule of Gson itself.
    Absent,
}

/// Reads a text; `None` if it holds no value or `null`.
pub(super) fn read<T: DeserializeOwned>(text: &str, nulls: Nulls) -> Result<Option<T>, GsonError> {
    let Some(node) = parse(text)? else { return Ok(None) };
    if matches!(node, Node::Null(_)) {
        return Ok(None);
    }
    let reading = Reading { nulls, again: Cell::new(false) };
    loop {
        reading.again.set(false);
        let value = T::deserialize(Value { node: &node, place: Place::Element, reading: &reading });
        if !reading.again.get() {
            return value.map(Some);
        }
    }
}

/// One reading of a tree.
pub(super) struct Reading {
    nulls: Nulls,
    /// Whether a `null` was marked, so that this reading's result is not the last word.
    again: Cell<bool>,
}

/// Where a value stands, which decides whether it can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Field,
    Element,
    InOption,
}

/// One value of the tree, ready to be read.
#[derive(Clone, Copy)]
pub(super) struct Value<'a, 't> {
    pub(super) node: &'a Node<'t>,
    pub(super) place: Place,
    pub(super) reading: &'a Reading,
}

impl<'a, 't> Value<'a, 't> {
    fn refused(&self, expected: &str) -> GsonError {
        let found = match self.node {
            Node::Null(_) => "null".to_owned(),
            Node::Bool(value) => format!("`{value}`"),
            Node::Number(text) => format!("`{text}`"),
            Node::Text(text) => format!("the string `{text}`"),
            Node::Array(_) => "an array".to_owned(),
            Node::Object(_) => "an object".to_owned(),
        };
        GsonError::custom(format_args!("expected {expected}, found {found}"))
    }

    /// Marks a `null` that is no string; the caller then gives a stand-in.
    fn mark(&self, null: &Null<'t>, expected: &str) -> Result<(), GsonError> {
        let meaning = match self.place {
            Place::Element => return Err(self.refused(expected)),
            Place::Field => Meaning::Skipped,
            Place::InOption => Meaning::Absent,
        };
        if null.meaning.replace(meaning) != meaning {
            self.reading.again.set(true);
        }
        Ok(())
    }

    fn integer(&self) -> Result<i64, GsonError> {
        let expected = "an integer";
        match self.node {
            Node::Null(null) => self.mark(null, expected).map(|()| 0),
            Node::Number(text) => number::integer(text).ok_or_else(|| self.refused(expected)),
            Node::Text(text) => number::integer(text).ok_or_else(|| self.refused(expected)),
            _ => Err(self.refused(expected)),
        }
    }

    fn double(&self) -> Result<f64, GsonError> {
        let expected = "a number";
        match self.node {
            Node::Null(null) => self.mark(null, expected).map(|()| 0.0),
            Node::Number(text) => number::double(text).ok_or_else(|| self.refused(expected)),
            Node::Text(text) => number::double(text).ok_or_else(|| self.refused(expected)),
            _ => Err(self.refused(expected)),
        }
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
            // The visitor checks the range of its type.
            visitor.visit_i64(self.integer()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Value<'_, '_> {
    type Error = GsonError;

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        let expected = "`true` or `false`";
        let value = match self.node {
            Node::Null(null) => self.mark(null, expected).map(|()| false)?,
            Node::Bool(value) => *value,
            // Java's `parseBoolean`: anything that is not "true" is false.
            Node::Text(text) => text.eq_ignore_ascii_case("true"),
            _ => return Err(self.refused(expected)),
        };
        visitor.visit_bool(value)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        visitor.visit_f64(self.double()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        visitor.visit_f64(self.double()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        let expected = "a string";
        match (self.node, self.reading.nulls) {
            (Node::Text(text), _) => visitor.visit_str(text),
            (Node::Number(text), _) => visitor.visit_str(text),
            (Node::Null(_), Nulls::AsEmptyText) => visitor.visit_str(""),
            (Node::Null(null), Nulls::Absent) => {
                self.mark(null, expected)?;
                visitor.visit_str("")
            }
            (Node::Bool(value), Nulls::Absent) => visitor.visit_str(if *value { "true" } else { "false" }),
            _ => Err(self.refused(expected)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        match self.node {
            Node::Null(null)
                if self.reading.nulls == Nulls::Absent || null.meaning.get() == Meaning::Absent =>
            {
                visitor.visit_none()
            }
            _ => visitor.visit_some(Self { place: Place::InOption, ..self }),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        let expected = "an array";
        match self.node {
            Node::Array(items) => visitor.visit_seq(Elements::new(items, self.reading)),
            Node::Null(null) => {
                self.mark(null, expected)?;
                visitor.visit_seq(Elements::new(&[], self.reading))
            }
            _ => Err(self.refused(expected)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, GsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, GsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        let expected = "an object";
        match self.node {
            Node::Object(fields) => visitor.visit_map(Fields::new(fields, self.reading)),
            Node::Null(null) => {
                self.mark(null, expected)?;
                visitor.visit_map(Fields::new(&[], self.reading))
            }
            _ => Err(self.refused(expected)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GsonError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, GsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GsonError> {
        match self.node {
            Node::Text(text) => {
                let name: StrDeserializer<'_, GsonError> = text.as_ref().into_deserializer();
                visitor.visit_enum(name)
            }
            Node::Null(null) => {
                let expected = "the name of a constant";
                self.mark(null, expected)?;
                // The first name stands in, so that the rest is still read.
                let name: StrDeserializer<'_, GsonError> =
                    names.first().copied().unwrap_or("").into_deserializer();
                visitor.visit_enum(name)
            }
            _ => Err(self.refused("the name of a constant")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        visitor.visit_unit()
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GsonError> {
        match self.node {
            Node::Null(null) => {
                if self.place == Place::InOption {
                    self.mark(null, "a value")?;
                }
                visitor.visit_unit()
            }
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Number(text) => match text.parse() {
                Ok(value) => visitor.visit_i64(value),
                Err(_) => visitor.visit_f64(self.double()?),
            },
            Node::Text(text) => visitor.visit_str(text),
            Node::Array(items) => visitor.visit_seq(Elements::new(items, self.reading)),
            Node::Object(fields) => visitor.visit_map(Fields::new(fields, self.reading)),
        }
    }

    forward_to_deserialize_any! { char bytes byte_buf unit unit_struct identifier i128 u128 }
}
