//! What crosses the wire, each body defined once: written exactly as the Java systems write it, read
//! tolerantly. No I/O.

pub mod gson;
pub mod shenyu;
pub mod soul;
