//! Settings in layers: the default, over it the file, over it the environment, over it the flags.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::{Deserialize, Serialize};

/// A group of settings: one struct that reads the flags, the environment and the file.
///
/// Every field is optional: what a layer does not say stays as the layer below it left it.
pub(super) trait Area: Args + Default + Serialize + for<'de> Deserialize<'de> {
    /// What the settings are for; its [`Default`] is the lowest layer.
    type Config: Default;

    /// Every setting, and the field that it sets.
    const FIELDS: &'static [(&'static str, &'static [&'static str])];

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

/// The keys that settings have a value for, as they are written in the file.
pub(super) fn keys<A: Area>(settings: &A) -> BTreeSet<String> {
    toml::Table::try_from(settings).unwrap_or_default().into_iter().map(|(key, _)| key).collect()
}

/// The setting of a field of a part's own configuration, such as `connect_timeout`, as it is written in the file.
pub(super) fn setting<A: Area>(field: &str) -> Option<String> {
    let sets = |path: &[&str]| path.strip_prefix(&["config"]).unwrap_or(path).join(".") == field;
    let found = A::FIELDS.iter().find(|(_, path)| sets(path));
    found.map(|(setting, _)| setting.replace('_', "-"))
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

        const FIELDS: &'static [(&'static str, &'static [&'static str])] = &[
            $((stringify!($setting), &[$(stringify!($field)),+]),)+
            $($((stringify!($optional), &[$(stringify!($option)),+]),)+)?
        ];

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
