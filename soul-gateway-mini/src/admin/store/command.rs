//! The doors of the store: everything that changes it is one of these.

use soul_client::wire::soul::{ConditionData, DivideUpstream, MetaDataRegisterDto};
use thiserror::Error;

use crate::{
    admin::{
        problem::{Problem, sentence},
        register::{Dialect, Refusal, Service},
    },
    model::DataEvent,
};

/// A wish to change the store.
#[derive(Clone, Debug)]
pub enum Command {
    /// A service registers a route, and with Soul itself.
    Register(Box<Registration>),
    /// An instance says something of itself.
    Instance(Box<Report>),
    /// A round of probing has found something out.
    Verdicts(Verdicts),
    /// An operator changes a row.
    Edit(Edit),
}

/// One registration, checked for form.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Whose rules it follows.
    pub dialect: Dialect,
    /// Which service takes it.
    pub service: Service,
    /// What it says.
    pub body: MetaDataRegisterDto,
    /// What becomes of a node that is known as dead.
    pub revive: Revive,
}

/// What an instance says of itself, checked for form.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whose rules it follows.
    pub dialect: Dialect,
    /// Which service takes it.
    pub service: Service,
    /// Where it stands: the fields that name a selector, host and port.
    pub body: MetaDataRegisterDto,
    /// What it speaks, with `://`.
    pub protocol: String,
    /// What it says.
    pub event: InstanceEvent,
    /// What becomes of it if it is known as dead.
    pub revive: Revive,
}

/// What an instance can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceEvent {
    /// It listens. ShenYu only: with Soul the registration of a route says so.
    Listens,
    /// It still does.
    Beats,
    /// It leaves, and takes no request any more.
    Leaves,
}

/// What a registration does to a node that probing has found dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revive {
    /// It counts as alive: nobody else would find out.
    AtOnce,
    /// It stays dead until a probe passes.
    AfterProbe,
}

/// What a round of probing has found out.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// One a selector and upstream.
    pub verdicts: Vec<Verdict>,
    /// Upstreams dead since before this time are dropped; milliseconds since the epoch.
    pub forget_before_ms: Option<i64>,
}

/// The outcome of a probe of one upstream, with what was known when the probe began.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Id of the selector.
    pub selector: String,
    /// Address of the upstream.
    pub url: String,
    /// Which entry of that address was probed.
    pub incarnation: u64,
    /// What the entry had been heard of when the probe began.
    pub touched: u64,
    /// When the probe ended, milliseconds since the epoch.
    pub at_ms: i64,
    /// Why it failed; absent if the upstream answered.
    pub error: Option<String>,
}

/// A change by an operator. Absent fields of a patch stay as they are.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Changes a plugin.
    Plugin(String, PluginPatch),
    /// Makes a selector.
    NewSelector(Box<NewSelector>),
    /// Changes a selector.
    Selector(String, SelectorPatch),
    /// Deletes a selector with its rules.
    DeleteSelector(String),
    /// Puts an upstream into a selector.
    NewUpstream(String, DivideUpstream, Probing),
    /// Changes an upstream of a selector.
    Upstream(String, String, UpstreamPatch),
    /// Deletes an upstream of a selector.
    DeleteUpstream(String, String),
    /// Makes a rule.
    NewRule(Box<NewRule>),
    /// Changes a rule.
    Rule(String, RulePatch),
    /// Deletes a rule.
    DeleteRule(String),
    /// Changes metadata.
    MetaData(String, MetaDataPatch),
    /// Deletes metadata.
    DeleteMetaData(String),
}

/// Whether an upstream is probed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probing {
    /// As the others.
    #[default]
    On,
    /// Never; it counts as alive.
    Off,
}

/// Changes of a plugin.
#[derive(Clone, Debug, Default)]
pub struct PluginPatch {
    /// Whether it runs.
    pub enabled: Option<bool>,
    /// Its configuration, JSON text; empty for none.
    pub config: Option<String>,
}

/// Changes of a selector.
#[derive(Clone, Debug, Default)]
pub struct SelectorPatch {
    /// Its unique name.
    pub name: Option<String>,
    /// Soul's code of the match mode.
    pub match_mode: Option<i32>,
    /// Soul's code of the type.
    pub kind: Option<i32>,
    /// Lower is tried first.
    pub sort: Option<i32>,
    /// Whether it takes part in matching.
    pub enabled: Option<bool>,
    /// Whether a match is logged.
    pub logged: Option<bool>,
    /// Every condition.
    pub conditions: Option<Vec<ConditionData>>,
    /// The text for the plugin, for selectors without upstreams.
    pub handle: Option<String>,
}

/// Changes of an upstream.
#[derive(Clone, Debug, Default)]
pub struct UpstreamPatch {
    /// Relative share.
    pub weight: Option<i32>,
    /// Whether it may be chosen.
    pub status: Option<bool>,
    /// Length of the warm-up in milliseconds.
    pub warmup: Option<i32>,
    /// Scheme with `://`.
    pub protocol: Option<String>,
    /// Whether it is probed.
    pub probing: Option<Probing>,
}

/// A selector to make.
#[derive(Clone, Debug)]
pub struct NewSelector {
    /// Name of its plugin.
    pub plugin: String,
    /// The rest.
    pub patch: SelectorPatch,
    /// Its upstreams, and whether each is probed, for plugins that have some.
    pub upstreams: Option<Vec<(DivideUpstream, Probing)>>,
}

/// Changes of a rule.
#[derive(Clone, Debug, Default)]
pub struct RulePatch {
    /// Its unique name.
    pub name: Option<String>,
    /// Soul's code of the match mode.
    pub match_mode: Option<i32>,
    /// Lower is tried first.
    pub sort: Option<i32>,
    /// Whether it takes part in matching.
    pub enabled: Option<bool>,
    /// Whether a match is logged.
    pub logged: Option<bool>,
    /// Every condition.
    pub conditions: Option<Vec<ConditionData>>,
    /// How an upstream is chosen; `divide` only.
    pub load_balance: Option<String>,
    /// Extra attempts; `divide` only.
    pub retry: Option<i32>,
    /// Milliseconds for one attempt; `divide` only.
    pub timeout: Option<i64>,
    /// The text for the plugin, in place of the three before.
    pub handle: Option<String>,
}

/// A rule to make.
#[derive(Clone, Debug)]
pub struct NewRule {
    /// Id of its selector.
    pub selector: String,
    /// The rest.
    pub patch: RulePatch,
}

/// Changes of metadata.
#[derive(Clone, Debug, Default)]
pub struct MetaDataPatch {
    /// Whether gateways heed it.
    pub enabled: Option<bool>,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The store is at a new revision.
    Changed {
        /// What gateways are told, in order.
        events: Vec<DataEvent>,
        /// The new revision.
        revision: u64,
    },
    /// All was as wished already.
    NoChange,
}

/// An outcome, and what the sender of the command wants to know besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What changed.
    pub outcome: Outcome,
    /// Id of the row that was made or changed.
    pub subject: Option<String>,
    /// Address of a node that registered and is known as dead: worth a probe.
    pub probe: Option<String>,
}

/// Why a command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Rejected {
    /// A registration that cannot be kept.
    #[error(transparent)]
    Registration(#[from] Refusal),
    /// Sofa and tars: the path belongs to another method; the text is Soul's.
    #[error("you path already exist!")]
    PathTaken,
    /// No such row.
    #[error("no {kind} `{id}`")]
    NotFound {
        /// What was looked for.
        kind: &'static str,
        /// By which id or address.
        id: String,
    },
    /// A unique name is in use.
    #[error("{kind} `{name}` exists already")]
    Exists {
        /// What has the name.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Fields that do not fit the row.
    #[error("{}", sentence(.0))]
    Invalid(Vec<Problem>),
    /// The sender looked at an older revision.
    #[error("the store is at revision {actual}, not {expected}; read again, then repeat the change")]
    Stale {
        /// What the sender had seen.
        expected: u64,
        /// What it is.
        actual: u64,
    },
}
