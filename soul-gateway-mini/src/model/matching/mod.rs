//! Which selector and which rule serve a request: pure, compiled once, shared by gateway and admin.
//!
//! | file | what |
//! |---|---|
//! | `table` | selectors and rules of a plugin, in the order in which they are tried |
//! | `index` | which of them a request could match at all |
//! | `condition` | conditions and their match modes |
//! | `view` | what conditions see of a request |
//! | `operator` | comparing a value with a condition's |
//! | `ant` | path patterns |
//! | `java_regex` | Java's regular expressions on a linear-time engine |
//! | `few` | lists that mostly have one element |
//! | `decode`, `text` | Java's decoding, white space and line breaks |
//!
//! The gateway compiles a [`PluginTable`] for each change of its configuration. The admin compiles
//! [`Conditions`] to tell whoever stores them what is wrong with them.
//!
//! # Where Soul ends a request with an error
//! An unknown operator, an invalid expression and the like are found when the table is compiled: the entry
//! is refused, reported, and never matches. [`Invalids::Error`] gives Soul's own behaviour: an HTTP 500 for
//! the requests that reach the part in question.

pub(crate) mod decode;
pub(crate) mod text;

mod ant;
mod condition;
mod error;
mod few;
mod index;
pub(crate) mod java_regex;
mod operator;
mod table;
mod view;

pub use ant::{AntPattern, PathPatterns};
pub use condition::{Condition, Conditions, MatchMode};
pub use error::MatchError;
pub(crate) use index::long as text_hash;
pub use java_regex::{JavaRegex, RegexError, RegexErrorKind};
pub use operator::{Comparison, judge};
pub(crate) use table::PathTable;
pub use table::{CompiledRule, CompiledSelector, Invalids, Level, PluginTable, Refused};
pub use view::{AddressResolver, ContextFields, Field, RequestView};
