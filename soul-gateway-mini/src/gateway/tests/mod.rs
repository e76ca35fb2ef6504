//! Stories of a whole gateway, with raw sockets on both sides: what goes over the wire is compared by the byte.

mod bodies;
mod bytes;
mod failures;
mod life;
mod peers;
mod probing;
mod retries;
mod setup;
mod syncing;
mod times;
