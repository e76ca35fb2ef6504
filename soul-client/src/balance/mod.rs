//! Choosing an upstream: pure arithmetic, no I/O, no clock and no randomness but by argument.
//!
//! What is built for a list is immutable; what is learnt at run time (health, requests in flight, response times, ejections) is the
//! [`UpstreamState`] beside it and outlives it. The same core serves the gateway, for its callers, and the SDK:
//!
//! | | for | chooses by |
//! |---|---|---|
//! | [`UpstreamSet`] | the rules of one selector | any of them at each request: Soul's three ways, and the [policies](policy) that the set was built for |
//! | [`Balancer`], [`Snapshot`] | the calls to one service | one [`policy`] of many, with [`OutlierDetector`], panic threshold, [`SlowStart`] and [`Prefer`] |
//!
//! A choice takes no lock, allocates nothing and waits for nobody; only where there are several [`parts`], a thread takes memory when it
//! first sends to an upstream. A [`Pick`] counts its request in and, when completed, records
//! how it ended. Soul's own arithmetic, oddities included, is in [`soul`].
//!
//! # Where we differ from Soul
//! | situation | Soul ([`Choice::Soul`]) | ours ([`Choice::Strict`], the default) |
//! |---|---|---|
//! | `status` false, weight 0 or less | chosen by `hash`; by the others when nobody else has weight | never chosen |
//! | a list of one | always chosen | chosen if it may be |
//! | all weights zero | `random` chooses any, `roundRobin` the first | nobody: [`UpstreamSet::pick`] gives `None` |
//! | `hash`, the owner may not be chosen | – | the next point of the ring; no other key moves |
//! | `roundRobin`, a weight grows in warm-up | the running counter is reset, so the first newcomer gets the share of all | the counter goes on |
//!
//! Where all may be chosen and none is warming up, both choose the same, pick by pick. In both, upstreams that
//! the probe found down and upstreams already [`Tried`] for this request are left out.
//!
//! # Examples
//! ```
//! use soul_client::balance::{Choice, LoadBalance, PickContext, Tried, Upstream, UpstreamSet};
//! use soul_client::wire::soul::DivideUpstream;
//!
//! let handle = r#"[{"upstreamUrl":"10.0.0.2:8188","weight":50,"status":true},
//!                  {"upstreamUrl":"10.0.0.3:8188","weight":"0","status":true}]"#;
//! let upstreams: Vec<Upstream> = DivideUpstream::read_handle(handle)?.iter().map(Upstream::from).collect();
//! let set = UpstreamSet::build(upstreams, None, Choice::Strict);
//!
//! let mut tried = Tried::new();
//! let now_ms = 1_612_500_000_000;
//! let first = set.pick(LoadBalance::RoundRobin, &PickContext::at(now_ms));
//! let first = first.ok_or("no upstream")?;
//! assert_eq!(first.upstream().base_url(), "http://10.0.0.2:8188");
//!
//! // It failed; the only other one has weight 0, so there is nobody left.
//! tried.insert(first.state());
//! assert!(set.pick(LoadBalance::RoundRobin, &PickContext::at(now_ms).tried(&tried)).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod balancer;
mod budget;
mod check;
mod choose;
mod context;
mod current;
mod group;
mod health;
mod lease;
mod list;
mod load_balance;
mod members;
mod outlier;
pub mod parts;
mod pick;
mod points;
pub mod policy;
mod prefer;
mod set;
mod slow_start;
mod snapshot;
pub mod soul;
mod state;
mod success_rate;
mod traffic;
mod upstream;

pub use address::{JavaIpText, java_ip_text};
pub use balancer::Balancer;
pub use budget::{BudgetSettings, RetryBudget};
pub use check::{CheckSettings, HealthTrack};
pub use context::{FastRandom, Key, PickContext, RandomSource, Tried};
pub use health::Health;
pub use list::Member;
pub use load_balance::{LoadBalance, PolicyName, UnknownLoadBalance, Way};
pub use outlier::{OutlierDetector, Verdict};
pub use pick::{Outcome, Pick};
pub use prefer::Prefer;
pub use set::{Choice, SetSettings, SharedSettings, UpstreamSet};
pub use slow_start::SlowStart;
pub use snapshot::{Settings, Snapshot};
pub use state::{InFlight, UpstreamState};
pub use success_rate::SuccessRate;
pub use upstream::Upstream;

#[cfg(test)]
mod tests;
