//! The settings file: TOML, flat, its keys are the flags without their dashes.
//!
//! ```toml
//! admin-listen = "127.0.0.1:9095"
//! upstream-check-interval = 2.5
//! ```
//!
//! Every mistake is collected with its line, so that one start shows them all.

use std::{fs, path::Path};

use toml::{
    Spanned,
    de::{DeTable, Deserializer},
};

use super::{
    admin::AdminSettings,
    error::{ConfigError, FileMistake},
    gateway::GatewaySettings,
    layer::Area,
    nearest,
    process::ProcessSettings,
};

/// What the file says, by area.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FileSettings {
    pub(super) process: ProcessSettings,
    pub(super) admin: AdminSettings,
    pub(super) gateway: GatewaySettings,
}

/// Reads the file.
///
/// # Errors
/// When it cannot be read, is no TOML, holds a key that is no setting or a value that is not allowed.
pub(super) fn read(path: &Path) -> Result<FileSettings, ConfigError> {
    let text = fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        file: path.to_owned(),
        setting: "--config",
        source,
    })?;
    parse(&text).map_err(|mistakes| ConfigError::File { file: path.to_owned(), mistakes })
}

fn parse(text: &str) -> Result<FileSettings, Vec<FileMistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut mistakes: Vec<_> = errors.iter().map(|error| mistake(text, None, error, 0)).collect();
    let mut settings = FileSettings::default();
    if mistakes.is_empty() {
        let table = table.into_inner();
        settings = FileSettings {
            process: area(text, &table, &mut mistakes),
            admin: area(text, &table, &mut mistakes),
            gateway: area(text, &table, &mut mistakes),
        };
        mistakes.extend(unknown_keys(text, &table));
    }
    mistakes.sort_by_key(|mistake| mistake.line);
    if mistakes.is_empty() { Ok(settings) } else { Err(mistakes) }
}

/// Reads the settings of one area, each alone first, so that every mistake is found and told with its key.
fn area<A: Area>(text: &str, table: &DeTable<'_>, mistakes: &mut Vec<FileMistake>) -> A {
    let keys = keys::<A>();
    let mut good = DeTable::new();
    for (key, value) in table {
        if !keys.iter().any(|known| known == key.get_ref()) {
            continue;
        }
        let alone = DeTable::from_iter([(key.clone(), value.clone())]);
        match read_table::<A>(alone) {
            Ok(_) => drop(good.insert(key.clone(), value.clone())),
            Err(error) => {
                mistakes.push(mistake(text, Some(key.get_ref().to_string()), &error, key.span().start));
            }
        }
    }
    read_table(good).unwrap_or_default()
}

fn read_table<A: Area>(table: DeTable<'_>) -> Result<A, toml::de::Error> {
    A::deserialize(Deserializer::from(Spanned::new(0..0, table)))
}

/// The keys of one area: the names of its flags.
fn keys<A: Area>() -> Vec<String> {
    let command = A::augment_args(clap::Command::new(""));
    command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect()
}

/// The keys that are settings of no area.
fn unknown_keys(text: &str, table: &DeTable<'_>) -> Vec<FileMistake> {
    let mut known = keys::<ProcessSettings>();
    known.extend(keys::<AdminSettings>());
    known.extend(keys::<GatewaySettings>());
    let unknown = table.keys().filter(|key| !known.iter().any(|known| known == key.get_ref()));
    unknown
        .map(|key| {
            let message = match nearest(key.get_ref(), known.iter().map(String::as_str)) {
                Some(near) => format!("no such setting; did you mean `{near}`?"),
                None => format!("no such setting; known are {}", known.join(", ")),
            };
            let line = line(text, key.span().start);
            FileMistake { line, key: Some(key.get_ref().to_string()), message }
        })
        .collect()
}

fn mistake(text: &str, key: Option<String>, error: &toml::de::Error, start: usize) -> FileMistake {
    let start = error.span().map_or(start, |span| span.start);
    FileMistake { line: line(text, start), key, message: error.message().to_owned() }
}

/// The line, from 1, of a position in the text.
fn line(text: &str, position: usize) -> usize {
    let before = &text.as_bytes()[..position.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        admin::DataDir,
        config::value::{DataPlace, Interval},
    };

    fn mistakes(text: &str) -> Vec<FileMistake> {
        parse(text).expect_err(text)
    }

    #[test]
    fn keys_are_the_names_of_the_flags() {
        let settings = parse(
            "data-dir = \"memory\"\nadmin-listen = \"127.0.0.1:1\"\nupstream-check-interval = 2.5\n\
             admin = [\"http://a:1\", \"http://b:2\"]\ngateway-check-interval = 0\n",
        )
        .unwrap();
        assert_eq!(settings.process.data_dir, Some(DataPlace(DataDir::Memory)));
        assert_eq!(settings.admin.admin_listen, Some("127.0.0.1:1".parse().unwrap()));
        let check = settings.admin.upstream_check_interval;
        assert_eq!(check, Some(Interval(Duration::from_millis(2500))));
        assert_eq!(settings.gateway.admin.unwrap().len(), 2);
        assert_eq!(settings.gateway.gateway_check_interval, Some(Interval(Duration::ZERO)));
    }

    #[test]
    fn every_default_is_accepted_as_it_is_written() {
        fn check<A: Area + PartialEq + std::fmt::Debug>() {
            let defaults = A::of(&A::Config::default());
            let text = toml::to_string(&defaults).unwrap();
            let read: A = toml::from_str(&text).unwrap();
            assert_eq!(read, defaults, "{text}");
        }
        check::<ProcessSettings>();
        check::<AdminSettings>();
        check::<GatewaySettings>();
    }

    #[test]
    fn every_flag_is_a_key() {
        fn check<A: Area>() {
            for key in keys::<A>() {
                // A table is no value of any setting: the refusal must be about the value, not the key.
                let mistakes = mistakes(&format!("{key} = {{}}"));
                assert!(!mistakes[0].message.contains("unknown field"), "{key}: {mistakes:?}");
                assert!(mistakes[0].message.contains("expected"), "{key}: {mistakes:?}");
            }
        }
        check::<ProcessSettings>();
        check::<AdminSettings>();
        check::<GatewaySettings>();
    }

    #[test]
    fn all_mistakes_are_told_with_line_and_key() {
        let mistakes = mistakes(
            "# comment\nadmin-listn = \"127.0.0.1:1\"\nadmin-listen = \"nowhere\"\n\nupstream-check-interval = -1\n",
        );
        let told: Vec<_> = mistakes.iter().map(|m| (m.line, m.key.as_deref().unwrap_or_default())).collect();
        assert_eq!(told, [(2, "admin-listn"), (3, "admin-listen"), (5, "upstream-check-interval")]);
        assert!(mistakes[0].message.contains("did you mean `admin-listen`?"), "{mistakes:?}");
        assert!(mistakes[1].message.contains("expected `IP:PORT`"), "{mistakes:?}");
        assert!(mistakes[2].message.contains("0 to 31536000"), "{mistakes:?}");
    }

    #[test]
    fn a_key_unlike_any_is_answered_with_all() {
        let mistakes = mistakes("zzz = 1\n");
        assert!(mistakes[0].message.contains("known are data-dir"), "{mistakes:?}");
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line() {
        let mistakes = mistakes("data-dir = \"x\"\nadmin-listen = \n");
        assert_eq!(mistakes[0].line, 2, "{mistakes:?}");
    }

    #[test]
    fn a_repeated_key_is_refused() {
        let mistakes = mistakes("data-dir = \"x\"\ndata-dir = \"y\"\n");
        assert_eq!(mistakes[0].line, 2, "{mistakes:?}");
    }

    #[test]
    fn a_wrong_type_says_the_right_one() {
        let mistakes = mistakes("admin-listen = 9095\n");
        assert!(mistakes[0].message.contains("a string `IP:PORT`"), "{mistakes:?}");
    }
}
