//! The JSON texts inside `handle` fields (specification, sections 2.4, 2.5, 3.7).

use serde::{Deserialize, Serialize};

use crate::wire::gson::{self, GsonError};

/// One upstream in the handle of a `divide` selector.
///
/// An absent `status` reads as `false` and an absent number as 0, because Java builds this class without
/// its constructor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DivideUpstream {
    /// Informative; registration writes `localhost`.
    pub upstream_host: Option<String>,
    /// Scheme with `://`; blank means `http://`.
    pub protocol: Option<String>,
    /// `host:port`.
    pub upstream_url: Option<String>,
    /// Relative share.
    pub weight: i32,
    /// Whether it may be chosen.
    pub status: bool,
    /// Start of the warm-up, milliseconds since the epoch; 0 is none.
    pub timestamp: i64,
    /// Length of the warm-up in milliseconds; 0 or less means 600 000.
    pub warmup: i32,
}

impl DivideUpstream {
    /// Weight that registration gives every upstream.
    pub const REGISTERED_WEIGHT: i32 = 50;

    /// The entry that a registration adds for an instance at `url`, which is `host:port`.
    ///
    /// It has no warm-up: Soul leaves `timestamp` 0.
    #[must_use]
    pub fn registered(url: impl Into<String>) -> Self {
        Self {
            upstream_host: Some("localhost".to_owned()),
            protocol: Some("http://".to_owned()),
            upstream_url: Some(url.into()),
            weight: Self::REGISTERED_WEIGHT,
            status: true,
            timestamp: 0,
            warmup: 0,
        }
    }

    /// Reads the handle of a `divide` selector. An empty text is no upstream; elements that are `null` are left
    /// out; [`read_entries`](Self::read_entries) keeps them.
    ///
    /// # Errors
    /// When the text is not an array of upstreams; the message names the field.
    ///
    /// # Examples
    /// ```
    /// use soul_client::wire::soul::DivideUpstream;
    ///
    /// let handle = DivideUpstream::write_handle(&[DivideUpstream::registered("10.0.0.2:8188")]);
    /// assert_eq!(DivideUpstream::read_handle(&handle)?[0].weight, 50);
    /// assert!(DivideUpstream::read_handle("")?.is_empty());
    /// # Ok::<(), soul_client::wire::gson::GsonError>(())
    /// ```
    pub fn read_handle(handle: &str) -> Result<Vec<Self>, GsonError> {
        let entries = Self::read_entries(handle)?;
        Ok(entries.into_iter().flatten().flatten().collect())
    }

    /// Reads the handle of a `divide` selector as it is: `None` for an empty text and for `null`, and an entry
    /// that is `null` in its place. The gateway skips those, while an admin fails on them.
    ///
    /// # Errors
    /// When the text is not an array of upstreams; the message names the field.
    pub fn read_entries(handle: &str) -> Result<Option<Vec<Option<Self>>>, GsonError> {
        gson::from_str(handle)
    }

    /// Writes the handle of a `divide` selector.
    #[must_use]
    pub fn write_handle(upstreams: &[Self]) -> String {
        gson::to_soul(upstreams).expect("OK because strings, integers and booleans are always written")
    }
}

/// Handle of a `divide` rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DivideRuleHandle {
    /// `hash`, `random` or `roundRobin`.
    pub load_balance: Option<String>,
    /// Extra attempts.
    pub retry: i32,
    /// Milliseconds for one attempt.
    pub timeout: i64,
}

impl Default for DivideRuleHandle {
    fn default() -> Self {
        // Java keeps its field defaults for this class: 3000 ms when the text does not say.
        Self { load_balance: None, retry: 0, timeout: 3000 }
    }
}

impl DivideRuleHandle {
    /// The handle that a registration gives a new rule.
    #[must_use]
    pub fn registered() -> Self {
        Self { load_balance: Some("random".to_owned()), ..Self::default() }
    }
}

/// Handle of a `context_path` rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextMappingHandle {
    /// Prefix to take off.
    pub context_path: Option<String>,
    /// Path to use in place of the rest.
    pub real_url: Option<String>,
}

/// Handle of a `rewrite` rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RewriteHandle {
    /// Path to send instead.
    #[serde(rename = "rewriteURI")]
    pub rewrite_uri: Option<String>,
}

/// Handle of a `springCloud` selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpringCloudHandle {
    /// Name of the service in the registry.
    pub service_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registration_writes_the_texts_of_the_java_admin() {
        assert_eq!(
            DivideUpstream::write_handle(&[DivideUpstream::registered("10.0.0.2:8188")]),
            r#"[{"upstreamHost":"localhost","protocol":"http://","upstreamUrl":"10.0.0.2:8188","weight":50,"status":true,"timestamp":0,"warmup":0}]"#
        );
        assert_eq!(
            gson::to_soul(&DivideRuleHandle::registered()),
            Ok(r#"{"loadBalance":"random","retry":0,"timeout":3000}"#.to_owned())
        );
    }

    #[test]
    fn a_null_upstream_is_left_out() {
        let text = "[null,{upstreamUrl:a},]";
        let upstream = DivideUpstream { upstream_url: Some("a".to_owned()), ..Default::default() };
        assert_eq!(DivideUpstream::read_handle(text).unwrap(), std::slice::from_ref(&upstream));
        let entries = DivideUpstream::read_entries(text).unwrap().unwrap();
        assert_eq!(entries, [None, Some(upstream), None]);
        assert_eq!(DivideUpstream::read_entries("null").unwrap(), None);
    }
}
