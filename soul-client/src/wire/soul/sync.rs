//! How an admin passes its configuration on (specification, section 10).

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize};

/// The five groups of configuration, in the order in which an admin compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConfigGroup {
    /// Applications that sign requests.
    AppAuth,
    /// Plugins.
    Plugin,
    /// Rules.
    Rule,
    /// Selectors.
    Selector,
    /// Metadata.
    MetaData,
}

impl ConfigGroup {
    /// All groups, in wire order.
    pub const ALL: [Self; 5] = [Self::AppAuth, Self::Plugin, Self::Rule, Self::Selector, Self::MetaData];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AppAuth => "APP_AUTH",
            Self::Plugin => "PLUGIN",
            Self::Rule => "RULE",
            Self::Selector => "SELECTOR",
            Self::MetaData => "META_DATA",
        }
    }
}

impl fmt::Display for ConfigGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A group name that is none of the five.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGroup(pub String);

impl fmt::Display for UnknownGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown configuration group `{}`, expected one of ", self.0)?;
        for (i, group) in ConfigGroup::ALL.into_iter().enumerate() {
            write!(f, "{}`{group}`", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownGroup {}

impl FromStr for ConfigGroup {
    type Err = UnknownGroup;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|g| g.as_str() == text).ok_or_else(|| UnknownGroup(text.to_owned()))
    }
}

/// What happened to the entries of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DataEventType {
    /// Entries are gone.
    Delete,
    /// Entries are new.
    Create,
    /// Entries are new or changed.
    Update,
    /// The whole group, to every gateway.
    Refresh,
    /// The whole group, to the gateway that asked.
    Myself,
}

/// One group in the answer of `/configs/fetch`; read it with [`gson::from_plain`](crate::wire::gson::from_plain).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de>"))]
pub struct FetchedGroup<T> {
    /// Lower-case hex MD5 of the admin's own text of the group; a gateway echoes it and never computes it.
    pub md5: String,
    /// The admin's clock when the text was made, milliseconds since the epoch.
    pub last_modify_time: i64,
    /// The entries. A Java admin writes `null` for one whose plugin is missing; those are left out.
    #[serde(default, deserialize_with = "without_nulls")]
    pub data: Vec<T>,
}

fn without_nulls<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let entries: Option<Vec<Option<T>>> = Option::deserialize(from)?;
    Ok(entries.into_iter().flatten().flatten().collect())
}

/// One websocket message of an admin; written with [`gson::to_soul`](crate::wire::gson::to_soul).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebsocketData<T> {
    /// The group.
    pub group_type: ConfigGroup,
    /// What happened.
    pub event_type: DataEventType,
    /// The entries it happened to.
    pub data: Vec<T>,
}

/// The shape of every answer of an admin, and of a gateway's error body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoulResult<'m, T> {
    /// 200 is success on the admin; a gateway uses negative codes.
    pub code: i32,
    /// Words for a person; empty when absent.
    #[serde(default)]
    pub message: Cow<'m, str>,
    /// What was asked for.
    pub data: Option<T>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{gson, soul::PluginData};

    #[test]
    fn a_fetched_group_is_read_from_jackson_text() {
        let text = r#"{"code":200,"message":null,"data":{"md5":"x","lastModifyTime":1612368121901,
            "data":[{"id":"5","name":"divide","config":null,"role":"0","enabled":"true"},null]}}"#;
        let answer: SoulResult<'_, FetchedGroup<PluginData>> = gson::from_plain(text).unwrap().unwrap();
        let plugin = PluginData {
            id: Some("5".to_owned()),
            name: Some("divide".to_owned()),
            config: None,
            role: Some(0),
            enabled: Some(true),
        };
        assert_eq!(answer.message, "");
        assert_eq!(answer.data.unwrap().data, [plugin]);
    }
}
