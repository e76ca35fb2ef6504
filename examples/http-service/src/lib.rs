//! Soul's example service in Rust.
