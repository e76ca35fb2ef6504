//! Texts: a word, a folder.

use std::{fmt, path::PathBuf, str::FromStr};

use super::BadValue;
use crate::{admin::DataDir, config::layer::Written};

/// A text that is not blank, without the white space around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Word(String);

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

/// One file of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct FileName(PathBuf);

impl FromStr for FileName {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text.is_empty() { Err(BadValue::new("expected a file")) } else { Ok(Self(text.into())) }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

text_value!(FileName, "a string, such as \"gateway.pem\"");

impl Written<PathBuf> for FileName {
    fn write(field: &PathBuf) -> Self {
        Self(field.clone())
    }

    fn read(self) -> PathBuf {
        self.0
    }
}

/// Where data is kept: a folder, or `memory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct DataPlace(pub(in crate::config) DataDir);

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

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;

    #[test]
    fn data_goes_to_memory_or_into_a_folder() {
        assert_eq!("memory".parse(), Ok(DataPlace(DataDir::Memory)));
        assert_eq!("/data".parse(), Ok(DataPlace(DataDir::Path("/data".into()))));
        assert!(refusal::<DataPlace>("").contains("`memory`"));
    }
}
