//! One kind of correct use a file. Each says `ROUTES`, the paths and handlers that must be collected from it.

pub(crate) mod below_and_above_other_attributes;
pub(crate) mod by_macro_rules;
pub(crate) mod class_of_a_file;
pub(crate) mod classes;
pub(crate) mod conditional;
pub(crate) mod every_key;
pub(crate) mod extractors;
pub(crate) mod functions;
pub(crate) mod impl_blocks;
pub(crate) mod mounted;
pub(crate) mod mounted_anywhere;
pub(crate) mod renamed_crate;
pub(crate) mod strict_lints;
