//! Gson's writer.

use serde::{
    Serialize,
    ser::{
        Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, SerializeTupleStruct,
        Serializer,
    },
};

use super::{error::GsonError, number, text};

/// Which Gson is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Default settings.
    Plain,
    /// Soul's shared instance: a blank string is a `null`.
    Soul,
}

pub(super) fn write<T: Serialize + ?Sized>(value: &T, dialect: Dialect) -> Result<String> {
    let mut out = String::new();
    value.serialize(Writer { out: &mut out, dialect })?;
    Ok(out)
}

/// What was written: an object leaves out a field whose value is `Null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    Null,
    Value,
}

type Result<T> = std::result::Result<T, GsonError>;

struct Writer<'o> {
    out: &'o mut String,
    dialect: Dialect,
}

impl<'o> Writer<'o> {
    fn plain(self, text: &str) -> Result<Wrote> {
        self.out.push_str(text);
        Ok(Wrote::Value)
    }

    fn null(self) -> Result<Wrote> {
        self.out.push_str("null");
        Ok(Wrote::Null)
    }

    fn items(self) -> Items<'o> {
        self.out.push('[');
        Items { out: self.out, dialect: self.dialect, first: true }
    }

    fn fields(self) -> Members<'o> {
        self.out.push('{');
        Members { out: self.out, dialect: self.dialect, first: true, name: None }
    }
}

fn unsupported<T>(what: &str) -> Result<T> {
    Err(GsonError::new(format!("{what} cannot be written: no Soul body carries it")))
}

macro_rules! integers {
    ($($method:ident: $ty:ty),*) => {$(
        fn $method(self, value: $ty) -> Result<Wrote> {
            self.plain(&value.to_string())
        }
    )*};
}

impl<'o> Serializer for Writer<'o> {
    type Ok = Wrote;
    type Error = GsonError;
    type SerializeSeq = Items<'o>;
    type SerializeTuple = Items<'o>;
    type SerializeTupleStruct = Items<'o>;
    type SerializeTupleVariant = Impossible<Wrote, GsonError>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = Impossible<Wrote, GsonError>;

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_bool(self, value: bool) -> Result<Wrote> {
        self.plain(if value { "true" } else { "false" })
    }

    fn serialize_f32(self, value: f32) -> Result<Wrote> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<Wrote> {
        if value.is_finite() {
            self.plain(&number::double_text(value))
        } else {
            unsupported("a number that is not finite")
        }
    }

    fn serialize_char(self, value: char) -> Result<Wrote> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<Wrote> {
        if self.dialect == Dialect::Soul && text::is_blank(value) {
            return self.null();
        }
        text::push_quoted(self.out, value);
        Ok(Wrote::Value)
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Wrote> {
        unsupported("a run of bytes")
    }

    fn serialize_none(self) -> Result<Wrote> {
        self.null()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Wrote> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Wrote> {
        self.null()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Wrote> {
        self.null()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Wrote> {
        // Not by `serialize_str`: the name of a constant is never null.
        text::push_quoted(self.out, variant);
        Ok(Wrote::Value)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Wrote> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Wrote> {
        unsupported("an enum variant with data")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'o>> {
        Ok(self.items())
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'o>> {
        Ok(self.items())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'o>> {
        Ok(self.items())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        unsupported("an enum variant with data")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o>> {
        Ok(self.fields())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'o>> {
        Ok(self.fields())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        unsupported("an enum variant with data")
    }
}

/// An array being written.
struct Items<'o> {
    out: &'o mut String,
    dialect: Dialect,
    first: bool,
}

impl Items<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        value.serialize(Writer { out: self.out, dialect: self.dialect }).map(drop)
    }

    fn close(self) -> Result<Wrote> {
        self.out.push(']');
        Ok(Wrote::Value)
    }
}

impl SerializeSeq for Items<'_> {
    type Ok = Wrote;
    type Error = GsonError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.item(value)
    }

    fn end(self) -> Result<Wrote> {
        self.close()
    }
}

impl SerializeTuple for Items<'_> {
    type Ok = Wrote;
    type Error = GsonError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.item(value)
    }

    fn end(self) -> Result<Wrote> {
        self.close()
    }
}

impl SerializeTupleStruct for Items<'_> {
    type Ok = Wrote;
    type Error = GsonError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.item(value)
    }

    fn end(self) -> Result<Wrote> {
        self.close()
    }
}

/// An object being written.
struct Members<'o> {
    out: &'o mut String,
    dialect: Dialect,
    first: bool,
    /// The key of a map entry whose value comes next.
    name: Option<String>,
}

impl Members<'_> {
    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        let before = self.out.len();
        if !self.first {
            self.out.push(',');
        }
        text::push_quoted(self.out, name);
        self.out.push(':');
        match value.serialize(Writer { out: self.out, dialect: self.dialect }) {
            Ok(Wrote::Value) => self.first = false,
            Ok(Wrote::Null) => self.out.truncate(before),
            Err(e) => return Err(e.in_field(name)),
        }
        Ok(())
    }

    fn close(self) -> Result<Wrote> {
        self.out.push('}');
        Ok(Wrote::Value)
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = Wrote;
    type Error = GsonError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        self.member(name, value)
    }

    fn end(self) -> Result<Wrote> {
        self.close()
    }
}

impl SerializeMap for Members<'_> {
    type Ok = Wrote;
    type Error = GsonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        // Strings, numbers and names of constants write themselves; anything nested is no key.
        let written = write(key, Dialect::Plain)?;
        self.name = Some(match written.as_bytes().first() {
            Some(b'"') => super::from_str(&written)?.unwrap_or_default(),
            Some(b'{' | b'[') | None => return unsupported("a map key that is not text"),
            Some(_) => written,
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let name = self.name.take().ok_or_else(|| GsonError::new("a value was written before its name"))?;
        self.member(&name, value)
    }

    fn end(self) -> Result<Wrote> {
        self.close()
    }
}
