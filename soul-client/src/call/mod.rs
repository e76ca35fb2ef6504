//! Calling another service by its name: who its upstreams are, and which of them live.
//!
//! | room | does |
//! |---|---|
//! | [`discover`] | says where a service's upstreams are: a list, a file, DNS, an admin, or a source of one's own |
//! | [`filter`] | narrows a list: to the own zone, to a subset |
//! | [`probe`] | asks upstreams whether they live; one probe an address, however many services share it |
//! | [`Membership`] | the one task a service that brings all of this into the [`Balancer`](crate::balance::Balancer) |
//!
//! Choosing among the upstreams is arithmetic and stands in [`balance`](crate::balance); nothing here is on the path of a request.

mod clock;
pub mod discover;
mod event;
pub mod filter;
mod guard;
mod membership;
pub mod probe;
mod status;

pub use clock::Clock;
pub use discover::{Discover, DiscoverError, Refresh};
pub use event::{MemberEvent, MemberListener};
pub use filter::Filter;
pub use membership::{Membership, MembershipBuilder};
pub use status::MembershipStatus;
