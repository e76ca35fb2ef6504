//! Choosing an upstream: pure arithmetic, no I/O, no clock and no randomness but by argument.
