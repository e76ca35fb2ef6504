//! The elements of an array and the fields of an object, one after the other; each adds its place to an error.

use std::{borrow::Cow, slice};

use serde::{
    de::value::StrDeserializer,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess},
};

use super::{
    de::{Place, Reading, Value},
    error::GsonError,
    read::{Meaning, Node},
};

pub(super) struct Elements<'a, 't> {
    items: std::iter::Enumerate<slice::Iter<'a, Node<'t>>>,
    reading: &'a Reading,
}

impl<'a, 't> Elements<'a, 't> {
    pub(super) fn new(items: &'a [Node<'t>], reading: &'a Reading) -> Self {
        Self { items: items.iter().enumerate(), reading }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, '_> {
    type Error = GsonError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, GsonError> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let value = Value { node, place: Place::Element, reading: self.reading };
        seed.deserialize(value).map(Some).map_err(|e| e.in_element(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

pub(super) struct Fields<'a, 't> {
    fields: slice::Iter<'a, (Cow<'t, str>, Node<'t>)>,
    /// The field whose name was given out and whose value comes next.
    current: Option<(&'a str, &'a Node<'t>)>,
    reading: &'a Reading,
}

impl<'a, 't> Fields<'a, 't> {
    pub(super) fn new(fields: &'a [(Cow<'t, str>, Node<'t>)], reading: &'a Reading) -> Self {
        Self { fields: fields.iter(), current: None, reading }
    }
}

impl<'de> MapAccess<'de> for Fields<'_, '_> {
    type Error = GsonError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, GsonError> {
        for (name, node) in self.fields.by_ref() {
            let node = match node {
                Node::Null(null) if null.meaning.get() == Meaning::Skipped => match null.earlier.as_deref() {
                    Some(earlier) => earlier,
                    None => continue,
                },
                node => node,
            };
            self.current = Some((name, node));
            let name: StrDeserializer<'_, GsonError> = name.as_ref().into_deserializer();
            return seed.deserialize(name).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, GsonError> {
        let (name, node) =
            self.current.take().ok_or_else(|| GsonError::new("a value was asked for before its name"))?;
        let value = Value { node, place: Place::Field, reading: self.reading };
        seed.deserialize(value).map_err(|e| e.in_field(name))
    }
}
