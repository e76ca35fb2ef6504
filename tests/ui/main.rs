//! The attribute as users meet it: `pass` must compile, free of warnings, and be collected with the right
//! class and place. What must not compile is in `fail`, a package of its own.
//!
//! `pass` is part of this binary instead of being compiled by trybuild: it is checked with the lints on,
//! and its handlers can be called.

mod collected;
mod pass;
