//! What can be wrong with the settings.

use std::{
    fmt,
    io::{self, Write as _},
    path::PathBuf,
};

/// A setting that cannot be used: which, where it was written, and what is allowed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// A flag or an environment variable; also `--help` and `--version`, which are no failures.
    Command(clap::Error),
    /// A flag of a part that this process does not run.
    Misplaced {
        /// The flag, with its dashes.
        flag: String,
        /// The subcommand it was given with; `None` without a subcommand.
        subcommand: Option<&'static str>,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A bad value in an environment variable.
    Environment {
        /// The variable.
        variable: String,
        /// The text it holds.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// Values that are fine alone and not together.
    Contradiction(String),
    /// The file cannot be read.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The flag that names it.
        setting: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Something in the file: every mistake, in the order of its lines.
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, never empty.
        mistakes: Vec<FileMistake>,
    },
}

/// One thing wrong in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMistake {
    /// Line in the file, from 1.
    pub line: usize,
    /// The key, where there is one.
    pub key: Option<String>,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl ConfigError {
    /// Prints the message where it belongs (`--help` and `--version` to stdout, mistakes to stderr) and gives
    /// the exit code: 0 or 2.
    #[must_use]
    pub fn report(&self) -> u8 {
        match self {
            Self::Command(error) => {
                // OK to ignore: when the terminal is gone there is nobody left to tell.
                let _ = error.print();
                u8::try_from(error.exit_code()).unwrap_or(2)
            }
            error => {
                let _ = writeln!(io::stderr(), "error: {error}");
                2
            }
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(error) => error.fmt(f),
            Self::Misplaced { flag, subcommand: Some(name), remedy } => {
                write!(f, "`{flag}` has no meaning with `{name}`: {remedy}")
            }
            Self::Misplaced { flag, subcommand: None, remedy } => {
                write!(f, "`{flag}` has no meaning without a subcommand: {remedy}")
            }
            Self::Environment { variable, value, expected } => {
                write!(f, "environment variable `{variable}`: bad value `{value}`: {expected}")
            }
            Self::Contradiction(problem) => f.write_str(problem),
            Self::Unreadable { file, setting, source } => {
                write!(
                    f,
                    "read `{}` (`{setting}`), expected a file that this user may read: {source}",
                    file.display()
                )
            }
            Self::File { file, mistakes } => {
                for (index, FileMistake { line, key, message }) in mistakes.iter().enumerate() {
                    let line_break = if index == 0 { "" } else { "\n" };
                    write!(f, "{line_break}{}:{line}: ", file.display())?;
                    match key {
                        Some(key) => write!(f, "`{key}`: {message}")?,
                        None => f.write_str(message)?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<clap::Error> for ConfigError {
    fn from(error: clap::Error) -> Self {
        Self::Command(error)
    }
}
