//! The attribute of `soul-client`; use it through that crate.
