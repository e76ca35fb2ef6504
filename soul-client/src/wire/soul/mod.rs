//! The bodies and paths of Soul, Feb-2021 and 2.3.0.

pub mod answer;
mod data;
mod handle;
mod md5;
pub mod paths;
mod pattern;
mod register;
mod sync;
mod unified;

pub use data::{
    AppAuthData, AuthParamData, AuthPathData, ConditionData, MetaData, PluginData, RuleData, SelectorData,
};
pub use handle::{ContextMappingHandle, DivideRuleHandle, DivideUpstream, RewriteHandle, SpringCloudHandle};
pub use md5::md5_hex;
pub use pattern::is_pattern;
pub use register::{MetaDataRegisterDto, RpcRegisterDto, SpringCloudRegisterDto, SpringMvcRegisterDto};
pub use sync::{ConfigGroup, DataEventType, FetchedGroup, SoulResult, UnknownGroup, WebsocketData};
pub use unified::{UnifiedRegisterDto, UriRegisterDto};
