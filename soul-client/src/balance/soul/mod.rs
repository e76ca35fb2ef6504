//! Soul's own arithmetic, bit for bit and with its oddities, as pure functions.
//!
//! [`UpstreamSet`](super::UpstreamSet) is built of these. They know nothing of health or of what was tried: whoever
//! calls them decides which upstreams take part.
//!
//! # Source
//! Soul specification, section 6.5; the golden vectors of the Java classes run against every function.

mod draw;
mod ring;
mod smooth;
mod weight;

pub use draw::random;
pub use ring::{Ring, hash};
pub use smooth::{RoundRobin, Turn};
pub use weight::effective_weight;
pub(super) use weight::{steady_for, warmup};
