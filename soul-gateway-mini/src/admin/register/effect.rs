//! What a plan consists of: the rows it makes, and how it ends.

use std::sync::Arc;

use soul_client::wire::soul::{DataEventType, DivideUpstream, MetaData, RuleData, SelectorData};
use thiserror::Error;

use super::{HandleFault, MetaDataRow, UnsupportedRpcType};
use crate::model::{DataEvent, GroupData};

/// The rows a registration makes, in order, and how it ends.
#[derive(Debug)]
pub struct Plan {
    /// What happens before the end; with a refusal, what Soul would have done before failing.
    pub effects: Vec<Effect>,
    /// The answer, or why there is none.
    pub end: Result<Reply, Refusal>,
    /// The node that registered, known before or new; absent where a selector has no upstreams.
    pub node: Option<Node>,
}

/// Where the node of a registration stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name of its selector.
    pub selector: String,
    /// Its address.
    pub url: String,
}

/// One row made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Metadata is new, or replaces the row of the same id.
    MetaData(Box<MetaDataEffect>),
    /// A selector is new.
    Selector {
        /// The selector, handle text included.
        data: SelectorData,
        /// Its upstreams, if its handle is a list of them.
        upstreams: Option<Vec<DivideUpstream>>,
    },
    /// A selector that was there has one upstream more.
    Upstream {
        /// The selector with the new handle text.
        data: SelectorData,
        /// The new upstream, the last of the list.
        added: DivideUpstream,
    },
    /// A rule is new.
    Rule(RuleData),
}

/// Metadata made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaDataEffect {
    /// The row to keep.
    pub row: MetaDataRow,
    /// What gateways are told, which for RPC kinds is made from the request.
    pub sent: MetaData,
    /// Create or update.
    pub kind: DataEventType,
}

impl Effect {
    /// What gateways are told of it.
    #[must_use]
    pub fn event(&self) -> DataEvent {
        match self {
            Self::MetaData(effect) => DataEvent {
                kind: effect.kind,
                data: GroupData::MetaData(vec![Arc::new(effect.sent.clone())]),
            },
            // Soul sends an update for rows that are new, too.
            Self::Selector { data, .. } | Self::Upstream { data, .. } => DataEvent {
                kind: DataEventType::Update,
                data: GroupData::Selector(vec![Arc::new(data.clone())]),
            },
            Self::Rule(rule) => {
                DataEvent { kind: DataEventType::Update, data: GroupData::Rule(vec![Arc::new(rule.clone())]) }
            }
        }
    }

    /// The upstream that the health check learns of: name of the selector, and the address.
    #[must_use]
    pub fn submitted(&self) -> Option<(Option<&str>, &str)> {
        let (data, upstream) = match self {
            Self::Selector { data, upstreams: Some(list) } => (data, list.last()?),
            Self::Upstream { data, added } => (data, added),
            _ => return None,
        };
        Some((data.name.as_deref(), upstream.upstream_url.as_deref().unwrap_or_default()))
    }
}

/// The text a registration is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// All is as wished.
    Success,
    /// Sofa and tars: the path belongs to another method.
    PathTaken,
}

impl Reply {
    /// The exact body.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::PathTaken => "you path already exist!",
        }
    }
}

/// Why a registration fails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A field is needed that the body does not have.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The rpc type has no rule handle.
    #[error(transparent)]
    RpcType(#[from] UnsupportedRpcType),
    /// The selector of that name cannot take an upstream.
    #[error("selector `{selector}` cannot take an upstream")]
    Handle {
        /// Name of the selector.
        selector: String,
        /// What is wrong with its handle.
        #[source]
        fault: HandleFault,
    },
    /// The selector of that name is another plugin's, whose gateways would not find the instance.
    #[error("selector `{selector}` belongs to the plugin `{plugin}`: register with another context path")]
    Plugin {
        /// Name of the selector.
        selector: String,
        /// Name of its plugin.
        plugin: String,
    },
}
