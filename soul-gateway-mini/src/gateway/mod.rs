//! The gateway: from a request to its upstream and back.

pub mod context;
