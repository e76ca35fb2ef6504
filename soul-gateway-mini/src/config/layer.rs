//! Settings in layers: the default, over it the file, over it the environment, over it the flags.

use std::collections::BTreeMap;

use clap::Args;
use serde::{Deserialize, Serialize};

/// A group of settings: one struct that reads the flags, the environment and the file.
///
/// Every field is optional: what a layer does not say stays as the layer below it left it.
pub(super) trait Area: Args + Default + Serialize + for<'de> Deserialize<'de> {
    /// What the settings are for; its [`Default`] is the lowest layer.
    type Config: Default;

    /// Writes a whole configuration as settings.
    fn of(config: &Self::Config) -> Self;

    /// Lays these settings over a configuration.
    fn apply(self, config: &mut Self::Config);
}

/// The settings of an area by name, as they are written in the file; secrets as `***`, and those without a value left
/// out.
pub(super) fn written<A: Area>(config: &A::Config) -> BTreeMap<String, String> {
    let table = toml::Table::try_from(A::of(config)).unwrap_or_default();
    let text = |value: toml::Value| match value {
        toml::Value::String(text) => text,
        toml::Value::Array(values) => {
            let texts = values.iter().map(|value| value.as_str().unwrap_or_default());
            texts.collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    };
    table.into_iter().map(|(key, value)| (key, text(value))).collect()
}

/// A value as it is written, of a field as the parts use it.
pub(super) trait Written<T>: Sized {
    /// The field, written.
    fn write(field: &T) -> Self;

    /// The field that is meant.
    fn read(self) -> T;
}

impl<T, W: Written<T>> Written<Vec<T>> for Vec<W> {
    fn write(field: &Vec<T>) -> Self {
        field.iter().map(W::write).collect()
    }

    fn read(self) -> Vec<T> {
        self.into_iter().map(W::read).collect()
    }
}

/// Writes both directions of [`Area`] from one list; a setting missing from it does not compile.
///
/// The second list is of fields that are an `Option` themselves: by default there is no value at all.
macro_rules! settings_of {
    (
        $config:ty {
            $($setting:ident => $($field:ident).+),+ $(,)?
        }
        $(optional {
            $($optional:ident => $($option:ident).+),+ $(,)?
        })?
    ) => {
        type Config = $config;

        fn of(config: &$config) -> Self {
            Self {
                $($setting: Some(Written::write(&config.$($field).+)),)+
                $($($optional: config.$($option).+.clone(),)+)?
            }
        }

        fn apply(self, config: &mut $config) {
            $(if let Some(written) = self.$setting {
                config.$($field).+ = Written::read(written);
            })+
            $($(if self.$optional.is_some() {
                config.$($option).+ = self.$optional;
            })+)?
        }
    };
}
pub(super) use settings_of;
