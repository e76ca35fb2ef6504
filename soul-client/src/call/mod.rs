//! Calling another service by its name: who its upstreams are, which of them live, and how a call gets to one.
//!
//! | room | does |
//! |---|---|
//! | [`ClientFactory`], [`LbClient`] | calls: `lb://orders/api/hello`, with retries at other upstreams, each service apart from all others |
//! | [`ServiceConfig`], [`CallConfig`] | what can be set, for all services, one, or one call; by the program, or by keys such as Ribbon's |
//! | [`Transport`] | carries a request of any kind to the upstream that was chosen; `LbLayer` (feature `tower`) puts one around a service of tower |
//! | [`discover`] | says where a service's upstreams are: a list, a file, DNS, an admin, or a source of one's own |
//! | [`filter`] | narrows a list: to the own zone, to a subset |
//! | [`probe`] | asks upstreams whether they live; one probe an address, however many services share it |
//! | [`Membership`] | the one task a service that brings all of this into the [`Balancer`](crate::balance::Balancer) |
//!
//! Choosing among the upstreams is arithmetic and stands in [`balance`](crate::balance).
//!
//! # The life of a call
//! | step | what happens | when it cannot |
//! |---|---|---|
//! | list | at the first call, the list of the service is waited for | [`CallErrorKind::NoInstance`], [`CallErrorKind::UnknownService`] |
//! | choose | the policy chooses among those that live and were not tried | [`CallErrorKind::NoInstance`] |
//! | rewrite | the upstream takes the place of the service in the address: [`reconstruct_uri`] | [`CallErrorKind::InvalidUri`] |
//! | send | head of the answer within `read_timeout` | the upstream is charged with it |
//! | record | time and outcome enter its statistics, as soon as the head is there | |
//! | repeat | the same, then others; by method, body, budget and time | [`CallErrorKind`] says which of them was in the way |

mod client;
mod clock;
mod config;
mod context;
pub mod discover;
mod error;
mod event;
mod execute;
mod factory;
pub mod filter;
mod guard;
mod left;
mod listen;
mod membership;
#[cfg(feature = "metrics")]
pub mod metrics;
mod options;
mod over_reqwest;
mod prefer;
mod prime;
pub mod probe;
mod response;
mod retry;
mod status;
#[cfg(feature = "tower")]
mod tower;
mod transport;
mod uri;

pub use crate::balance::BudgetSettings;
pub use client::{CallRequest, LbClient};
pub use clock::Clock;
pub use config::{
    CallConfig, Effective, Filters, HostHeader, Ignored, ListSource, ServiceConfig, Source, Timeouts,
};
pub use discover::{Discover, DiscoverError, Refresh};
pub use error::{AttemptError, CallError, CallErrorKind, Failed, Situation};
pub use event::{MemberEvent, MemberListener};
pub use execute::Served;
pub use factory::{ClientFactory, ClientFactoryBuilder};
pub use filter::Filter;
pub use listen::{CallEvent, CallListener};
pub use membership::{Membership, MembershipBuilder};
pub use options::CallOptions;
pub use response::CallResponse;
pub use retry::{Methods, Retry, Statuses};
pub use status::MembershipStatus;
#[cfg(feature = "tower")]
pub use tower::{ByClone, Classify, IfEmpty, LbLayer, LbService, Replay, ServedBy};
pub use transport::{Answer, Destination, Transport};
pub use uri::{ServiceUri, UriError, reconstruct_uri, rewrite_uri};

#[cfg(test)]
mod tests;
