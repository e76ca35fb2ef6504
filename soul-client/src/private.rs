//! What expanded code needs. Not part of the API: anything here may change in any release.

pub use inventory;

pub use crate::route::{Annotation, Class, Route, RpcType};
