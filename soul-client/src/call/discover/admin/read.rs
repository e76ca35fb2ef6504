//! What an admin's answers mean, read tolerantly: unknown members are passed over, numbers may be strings, and a selector that cannot be
//! read takes no other along.

use std::{collections::HashMap, fmt};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{api::DISCOVER_UPSTREAM, follow::Checksums};
use crate::{
    balance::Upstream,
    call::{DiscoverError, discover::Listed},
    wire::{
        gson,
        soul::{
            ConfigGroup, DivideUpstream, SelectorData,
            answer::{AnsweredGroup, BadAnswer, WholeGroup, payload},
        },
    },
};

/// Why an answer says nothing.
#[derive(Debug)]
pub(super) enum Unread {
    Bad(BadAnswer),
    Lacks(&'static str),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(bad) => write!(f, "read its answer: {bad}"),
            Self::Lacks(group) => {
                write!(f, "its answer lacks the group `{group}`, or the list or checksum of it")
            }
        }
    }
}

impl std::error::Error for Unread {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bad(bad) => bad.source(),
            Self::Lacks(_) => None,
        }
    }
}

/// What was fetched: the checksum of each group, and those groups that tell of upstreams.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) checksums: Checksums,
    pub(super) selectors: Option<Vec<Selector>>,
    pub(super) pushed: Option<Pushed>,
}

/// Upstreams that ShenYu gives apart from the selectors, by selector id.
type Pushed = HashMap<String, Vec<Upstream>>;

/// Everything that tells of upstreams.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    pub(super) selectors: Vec<Selector>,
    pub(super) pushed: Pushed,
}

/// One selector of `divide`.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    id: String,
    name: String,
    enabled: bool,
    /// Prefixes that its `uri` conditions ask for.
    prefixes: Vec<String>,
    upstreams: Result<Vec<Upstream>, String>,
}

impl Selectors {
    /// The upstreams of a service.
    pub(super) fn upstreams_of(&self, service: &str) -> Listed {
        let bare = service.trim_matches('/');
        let find = |is: &dyn Fn(&Selector) -> bool| self.selectors.iter().find(|selector| is(selector));
        let found = find(&|s| s.name.trim_matches('/') == bare)
            .or_else(|| find(&|s| s.prefixes.iter().any(|prefix| prefix == bare)));
        let Some(selector) = found else {
            return Err(DiscoverError::unknown_service(format!(
                "find the selector of `{service}`: the admin has no selector of `divide` that is named `/{bare}`"
            )));
        };
        if !selector.enabled {
            return Ok(Vec::new());
        }
        if let Some(pushed) = self.pushed.get(&selector.id) {
            return Ok(pushed.clone());
        }
        selector.upstreams.clone().map_err(|error| {
            DiscoverError::new(format!("read the handle of the selector `{}`", selector.name))
                .with_source(error)
        })
    }
}

/// Reads an answer to a fetch of these groups.
pub(super) fn fetched(body: &[u8], wanted: &[&'static str], namespace: &str) -> Result<Fetched, Unread> {
    let groups: Option<HashMap<&str, AnsweredGroup<&RawValue>>> = payload(body).map_err(Unread::Bad)?;
    let mut groups = groups.unwrap_or_default();
    let mut fetched = Fetched::default();
    for &name in wanted {
        let whole = groups.remove(name).and_then(AnsweredGroup::whole);
        let WholeGroup { md5, entries, .. } = whole.ok_or(Unread::Lacks(name))?;
        fetched.checksums.insert(name, md5);
        if name == ConfigGroup::Selector.as_str() {
            fetched.selectors = Some(selectors(&entries, namespace));
        } else if name == DISCOVER_UPSTREAM {
            fetched.pushed = Some(entries.iter().filter_map(|entry| pushed(entry)).collect());
        }
    }
    Ok(fetched)
}

/// Reads an answer to a poll: which of the known groups it names.
pub(super) fn changed(body: &[u8], known: &[&'static str]) -> Result<Vec<&'static str>, Unread> {
    let names: Vec<String> = payload(body).map_err(Unread::Bad)?.unwrap_or_default();
    Ok(known.iter().copied().filter(|group| names.iter().any(|name| name == group)).collect())
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// The selectors of `divide` in our namespace, by their order.
fn selectors(entries: &[&RawValue], namespace: &str) -> Vec<Selector> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Owner {
        namespace_id: Option<String>,
    }
    let mut selectors = Vec::new();
    for entry in entries {
        let owner: Owner = serde_json::from_str(entry.get()).unwrap_or_default();
        if owner.namespace_id.is_some_and(|owner| owner != namespace) {
            continue;
        }
        match gson::from_plain::<SelectorData>(entry.get()) {
            Ok(Some(data)) if data.plugin_name.as_deref() == Some("divide") => {
                selectors.push((data.sort.unwrap_or_default(), selector(data)));
            }
            // A Java admin writes `null` for a selector whose plugin is missing.
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a selector of the admin cannot be read"),
        }
    }
    selectors.sort_by_key(|(sort, _)| *sort);
    selectors.into_iter().map(|(_, selector)| selector).collect()
}

fn selector(data: SelectorData) -> Selector {
    let conditions = data.condition_list.iter().flatten().flatten();
    let prefixes = conditions.filter(|c| c.param_type.as_deref() == Some("uri")).filter_map(|c| {
        let value = c.param_value.as_deref()?;
        let prefix = value.strip_suffix("**").unwrap_or(value).trim_matches('/');
        (!prefix.is_empty() && !prefix.contains('*')).then(|| prefix.to_owned())
    });
    let handle = data.handle.as_deref().unwrap_or_default();
    Selector {
        prefixes: prefixes.collect(),
        upstreams: DivideUpstream::read_handle(handle)
            .map(|upstreams| {
                upstreams.iter().map(Upstream::from).filter(|u| !u.address().is_empty()).collect()
            })
            .map_err(|error| error.to_string()),
        id: data.id.unwrap_or_default(),
        name: data.name.unwrap_or_default(),
        enabled: data.enabled.unwrap_or_default(),
    }
}

/// One entry of [`DISCOVER_UPSTREAM`]; here status 0 is healthy, the opposite of the handle.
fn pushed(entry: &RawValue) -> Option<(String, Vec<Upstream>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        selector_id: Option<String>,
        plugin_name: Option<String>,
        upstream_data_list: Option<Vec<Option<Instance>>>,
    }
    #[derive(Deserialize)]
    struct Instance {
        protocol: Option<String>,
        url: Option<String>,
        #[serde(default)]
        status: Value,
        #[serde(default)]
        weight: Value,
        /// JSON text of words on the instance.
        props: Option<String>,
    }
    let entry: Entry = serde_json::from_str(entry.get())
        .map_err(|error| tracing::warn!(%error, "the upstreams of a selector cannot be read"))
        .ok()?;
    if entry.plugin_name.is_some_and(|plugin| plugin != "divide") {
        return None;
    }
    let instance = |instance: Instance| {
        let upstream = DivideUpstream {
            protocol: instance.protocol,
            weight: number(&instance.weight)
                .and_then(|weight| i32::try_from(weight).ok())
                .unwrap_or(DivideUpstream::REGISTERED_WEIGHT),
            status: number(&instance.status).unwrap_or_default() == 0,
            ..DivideUpstream::registered(instance.url?)
        };
        let upstream = Upstream::from(&upstream);
        (!upstream.address().is_empty()).then(|| with_props(upstream, instance.props.as_deref()))
    };
    let list = entry.upstream_data_list.into_iter().flatten().flatten();
    Some((entry.selector_id?, list.filter_map(instance).collect()))
}

/// Adds what ShenYu lets a registration say besides: all of it as metadata, `zone` as the zone. What is no table says nothing.
fn with_props(upstream: Upstream, props: Option<&str>) -> Upstream {
    let props: HashMap<String, Value> =
        props.and_then(|props| serde_json::from_str(props).ok()).unwrap_or_default();
    props.into_iter().fold(upstream, |upstream, (key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let upstream = if key == "zone" { upstream.with_zone(value.as_str()) } else { upstream };
        upstream.with_metadata(key, value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: &str = "649330b6-c2d7-4edc-be8e-8a54df9eb385";

    fn read(selectors: &str) -> Selectors {
        let body = format!(
            r#"{{"code":200,"data":{{"SELECTOR":{{"md5":"a","lastModifyTime":1,"data":{selectors}}}}}}}"#
        );
        let fetched = fetched(body.as_bytes(), &["SELECTOR"], NAMESPACE).unwrap();
        Selectors { selectors: fetched.selectors.unwrap(), pushed: Pushed::new() }
    }

    fn addresses(listed: Listed) -> Vec<String> {
        listed.unwrap().iter().map(|u| u.address().to_owned()).collect()
    }

    #[test]
    fn a_service_is_the_selector_of_its_context_path() {
        let selectors = read(
            r#"[null,
            {"id":"1","pluginName":"contextPath","name":"/orders","enabled":true,"handle":"[{\"upstreamUrl\":\"no:1\"}]"},
            {"id":"2","pluginName":"divide","name":"/orders","sort":"1","enabled":"true","handle":
              "[{\"protocol\":\"http://\",\"upstreamUrl\":\"10.0.0.2:8188\",\"weight\":\"50\",\"status\":true},{\"upstreamUrl\":\"\"}]"},
            {"id":"3","pluginName":"divide","name":"renamed","enabled":true,"handle":"[{\"upstreamUrl\":\"b:1\",\"status\":true}]",
              "conditionList":[{"paramType":"uri","operator":"match","paramName":"/","paramValue":"/stock/**"}]},
            {"id":"4","pluginName":"divide","name":"/off","enabled":false,"handle":"[{\"upstreamUrl\":\"c:1\"}]"},
            {"id":"5","pluginName":"divide","name":"/bad","enabled":true,"handle":"[{\"upstreamUrl\":\"c:1\",\"weight\":\"x\"}]"},
            {"id":"6","pluginName":"divide","name":"/other","enabled":true,"namespaceId":"n","handle":"[]"},
            {"id":"7","pluginName":"divide","name":"/unreadable","sort":"one"}]"#,
        );
        for service in ["orders", "/orders", "/orders/"] {
            assert_eq!(addresses(selectors.upstreams_of(service)), ["10.0.0.2:8188"], "{service}");
        }
        assert_eq!(selectors.upstreams_of("orders").unwrap()[0].weight(), 50);
        assert_eq!(addresses(selectors.upstreams_of("stock")), ["b:1"]);
        assert!(selectors.upstreams_of("off").unwrap().is_empty());
        let bad = selectors.upstreams_of("bad").unwrap_err();
        assert!(!bad.is_unknown_service() && bad.chain().contains("weight"), "{}", bad.chain());
        for unknown in ["order", "other", "unreadable", "Orders"] {
            let error = selectors.upstreams_of(unknown).unwrap_err();
            assert!(error.is_unknown_service() && error.to_string().contains(unknown), "{error}");
        }
    }

    #[test]
    fn what_shenyu_pushes_apart_counts_before_the_handle() {
        let body = r#"{"code":200,"data":{"DISCOVER_UPSTREAM":{"md5":"b","data":[
            {"selectorId":"2","pluginName":"divide","selectorName":"/orders","upstreamDataList":[
              {"protocol":"http://","url":"10.0.0.3:8188","status":0,"weight":10,"props":"{\"warmupTime\":\"10\",\"zone\":\"eu-1\"}"},
              {"protocol":"http://","url":"10.0.0.4:8188","status":1,"weight":"20"}]},
            {"selectorId":"9","pluginName":"tcp","upstreamDataList":[{"url":"x:1"}]}]}}}"#;
        let fetched = fetched(body.as_bytes(), &["DISCOVER_UPSTREAM"], NAMESPACE).unwrap();
        let mut selectors = read(
            r#"[{"id":"2","pluginName":"divide","name":"/orders","enabled":true,"handle":"[{\"upstreamUrl\":\"old:1\"}]"}]"#,
        );
        selectors.pushed = fetched.pushed.unwrap();
        assert_eq!(selectors.pushed.len(), 1);
        let list = selectors.upstreams_of("orders").unwrap();
        let seen: Vec<_> = list.iter().map(|u| (u.base_url(), u.status(), u.weight())).collect();
        assert_eq!(seen, [("http://10.0.0.3:8188", true, 10), ("http://10.0.0.4:8188", false, 20)]);
        assert_eq!((list[0].zone(), &*list[0].metadata()["warmupTime"]), (Some("eu-1"), "10"));
    }

    #[test]
    fn what_is_no_answer_of_an_admin_says_so() {
        for (body, part) in [
            ("<html>\nlog in", "it begins with `<html> log in`"),
            (r#"{"code":500,"message":"namespaceId is null"}"#, "code 500 and says `namespaceId is null`"),
            (r#"{"code":200,"data":{}}"#, "lacks the group `SELECTOR`"),
            (r#"{"code":200,"data":{"SELECTOR":{"md5":"","data":[]}}}"#, "lacks the group `SELECTOR`"),
            (r#"{"code":200,"data":{"SELECTOR":{"md5":"a","data":null}}}"#, "lacks the group `SELECTOR`"),
        ] {
            let error = fetched(body.as_bytes(), &["SELECTOR"], NAMESPACE).unwrap_err();
            assert!(error.to_string().contains(part), "{body}: {error}");
        }
    }

    #[test]
    fn a_poll_names_what_changed() {
        let named = |body: &str| changed(body.as_bytes(), &["SELECTOR", "RULE"]).unwrap();
        assert_eq!(
            named("{\"code\":200,\"message\":\"success\",\"data\":[\"SELECTOR\",\"NEW\"]}\n"),
            ["SELECTOR"]
        );
        assert!(named(r#"{"code":200,"data":null}"#).is_empty());
        assert!(changed(br#"{"code":500,"message":"group param invalid:,0","data":null}"#, &[]).is_err());
    }
}
