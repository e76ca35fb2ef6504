//! What the end-to-end stories stand on: the parts in this process or as processes, services behind the
//! gateway, the admin's wire, and waiting for conditions.
//!
//! Every part listens on a loopback address of its own ([`own_address`]), so that a story may stop one and
//! start it again on the same port without another story taking the port meanwhile.

mod address;
mod admin;
mod client;
mod gateway;
mod part;
mod process;
mod upstream;
mod wait;

pub use address::{free_addr, own_address};
pub use admin::{AdminApi, registration};
pub use client::{client, client_builder};
pub use gateway::GatewayApi;
pub use part::Part;
pub use process::{Output, Program, Running, text};
pub use upstream::{Seen, Upstream};
pub use wait::{DEADLINE, eventually, eventually_within};
