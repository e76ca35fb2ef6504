//! An upstream as the balance vectors write it.

use std::sync::Arc;

use serde::Deserialize;
use soul_client::{
    balance::{Choice, Upstream, UpstreamSet},
    wire::soul::DivideUpstream,
};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) url: String,
    pub(crate) weight: i32,
    pub(crate) status: bool,
    pub(crate) timestamp: i64,
    pub(crate) warmup: i32,
}

impl Node {
    pub(crate) fn upstream(&self) -> Upstream {
        Upstream::from(&DivideUpstream {
            upstream_url: Some(self.url.clone()),
            weight: self.weight,
            status: self.status,
            timestamp: self.timestamp,
            warmup: self.warmup,
            ..Default::default()
        })
    }
}

pub(crate) fn set(nodes: &[Node], previous: Option<&Arc<UpstreamSet>>, choice: Choice) -> Arc<UpstreamSet> {
    UpstreamSet::build(nodes.iter().map(Node::upstream).collect(), previous, choice)
}

/// The choices that must equal Soul's: its own always, the strict one where it leaves nobody out.
pub(crate) fn choices(nodes: &[Node]) -> impl Iterator<Item = Choice> {
    let everyone = nodes.iter().all(|node| node.upstream().takes_traffic());
    [Choice::Soul, Choice::Strict].into_iter().filter(move |&choice| choice == Choice::Soul || everyone)
}
