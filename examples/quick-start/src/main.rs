//! The quick start.

fn main() {}
