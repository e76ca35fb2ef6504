//! Stories of a whole gateway, with raw sockets on both sides: what goes over the wire is compared by the byte.

mod answers;
mod bodies;
mod bytes;
mod endings;
mod failures;
mod grpc;
mod hops;
mod http2;
mod http2_floods;
mod life;
mod load;
mod peers;
mod probing;
mod proxies;
mod reloading;
mod requests;
mod retries;
mod secure;
mod setup;
mod sharing;
mod syncing;
mod times;
mod tls;
mod tunnels;
mod upstream_http2;
mod upstream_tls;
