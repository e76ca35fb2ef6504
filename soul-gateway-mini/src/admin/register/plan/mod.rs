//! The plan itself: one function a service, made of the same four steps (metadata, selector, rule, context path); and
//! the plan of an instance that registers by itself, which is the second step alone.

mod meta_data;

use soul_client::wire::soul::{ConditionData, DivideUpstream, MetaDataRegisterDto, RuleData, SelectorData};

use super::{
    Dialect, Effect, HandleFault, Node, Plan, Refusal, Reply, Service, Stored, StoredSelector,
    context_segment, rule_handle, rule_pattern, spring_cloud_handle,
};
use crate::model;

/// Says what the registration of one route does.
///
/// # Shape
/// - `body`: the fields of either dialect; `context` of Feb-2021 stands in `context_path`.
/// - `stored`: the rows that are there.
/// - `ids`: a new id a call; conditions take one each, as in Soul, although nobody sees it.
///
/// # Source
/// Soul `SoulClientRegisterServiceImpl` (Feb-2021) and the register services of 2.3.0; specification, section 2. ShenYu
/// specification, section 2.1.
pub fn plan(
    dialect: Dialect,
    service: Service,
    body: &MetaDataRegisterDto,
    stored: &dyn Stored,
    ids: &mut dyn FnMut() -> String,
) -> Plan {
    let protocol = None;
    let mut planner =
        Planner { dialect, service, body, protocol, stored, ids, effects: Vec::new(), node: None };
    let end = planner.run();
    Plan { effects: planner.effects, end, node: planner.node }
}

/// Says what the registration of one instance does (ShenYu).
///
/// Whichever of a service's messages comes first makes its selector: an instance that registers before its routes waits
/// in it, where a Java admin keeps one such message a selector in memory and loses the rest.
///
/// # Shape
/// - `body`: context path, rpc type, name of the application, host and port.
/// - `protocol`: scheme with `://`.
///
/// # Source
/// ShenYu specification, section 2.4.
pub fn plan_instance(
    service: Service,
    body: &MetaDataRegisterDto,
    protocol: &str,
    stored: &dyn Stored,
    ids: &mut dyn FnMut() -> String,
) -> Plan {
    let (dialect, protocol) = (Dialect::Shenyu, Some(protocol));
    let mut planner =
        Planner { dialect, service, body, protocol, stored, ids, effects: Vec::new(), node: None };
    let end = planner.instance();
    Plan { effects: planner.effects, end, node: planner.node }
}

/// Name of the selector that a registration goes to.
///
/// # Errors
/// When the body names neither a context path nor a path to take it from.
pub fn selector_name(dialect: Dialect, body: &MetaDataRegisterDto) -> Result<Option<String>, Refusal> {
    let context = body.context_path.as_deref();
    match (dialect, context) {
        (Dialect::V230, None | Some("")) => {
            let path = body.path.as_deref().ok_or(Refusal::Missing("path"))?;
            Ok(Some(context_segment(path)))
        }
        _ => Ok(context.map(str::to_owned)),
    }
}

/// The state of one planning.
struct Planner<'a> {
    dialect: Dialect,
    service: Service,
    body: &'a MetaDataRegisterDto,
    /// What the node speaks; absent stands for HTTP.
    protocol: Option<&'a str>,
    stored: &'a dyn Stored,
    ids: &'a mut dyn FnMut() -> String,
    effects: Vec<Effect>,
    node: Option<Node>,
}

impl Planner<'_> {
    fn run(&mut self) -> Result<Reply, Refusal> {
        let known_method = match self.service {
            Service::SpringMvc => {
                match (self.body.register_meta_data, self.dialect) {
                    (false, _) => {}
                    (true, Dialect::Shenyu) => _ = self.rpc_meta_data(self.by_path()),
                    (true, Dialect::Feb2021 | Dialect::V230) => self.path_meta_data(),
                }
                false
            }
            Service::SpringCloud => {
                self.context_meta_data();
                false
            }
            Service::Dubbo | Service::Grpc => self.rpc_meta_data(self.by_path()),
            Service::Sofa | Service::Tars => {
                if self.path_taken() {
                    return Ok(Reply::PathTaken);
                }
                self.rpc_meta_data(self.by_method())
            }
        };
        let (selector_id, plugin) = self.selector()?;
        if self.wants_rule(known_method) {
            self.rule(selector_id, plugin)?;
        }
        if self.dialect != Dialect::Feb2021 && !self.service.is_rpc() {
            self.context_path();
        }
        Ok(Reply::Success)
    }

    fn instance(&mut self) -> Result<Reply, Refusal> {
        if !self.service.has_nodes(self.dialect) {
            return Ok(Reply::Success); // gateways find it in another registry
        }
        let name = self.selector_name()?;
        match name.as_deref().and_then(|name| self.stored.selector(name)) {
            Some(known) => {
                let plugin = known.data.plugin_name.clone().unwrap_or_default();
                if plugin != plugin_of(self.body.rpc_type.as_deref()).1 {
                    return Err(Refusal::Plugin { selector: known.data.name.unwrap_or_default(), plugin });
                }
                self.add_upstream(known)?;
            }
            None => _ = self.create_selector(name, vec![self.upstream()])?,
        }
        Ok(Reply::Success)
    }

    // === selector ===

    /// Finds or makes the selector; returns its id and the name of its plugin.
    fn selector(&mut self) -> Result<(Option<String>, Option<String>), Refusal> {
        let name = self.selector_name()?;
        match name.as_deref().and_then(|name| self.stored.selector(name)) {
            Some(known) => {
                let place = (known.data.id.clone(), known.data.plugin_name.clone());
                if self.service.registers_node(self.dialect) {
                    self.add_upstream(known)?;
                }
                Ok(place)
            }
            None => self.create_selector(name, self.first_upstreams()),
        }
    }

    fn selector_name(&self) -> Result<Option<String>, Refusal> {
        selector_name(self.dialect, self.body)
    }

    fn add_upstream(&mut self, known: StoredSelector) -> Result<(), Refusal> {
        let StoredSelector { mut data, upstreams } = known;
        let refuse = |fault| Refusal::Handle { selector: data.name.clone().unwrap_or_default(), fault };
        let mut list = upstreams.map_err(refuse)?;
        let url = self.url();
        self.node = Some(Node { selector: data.name.clone().unwrap_or_default(), url: url.clone() });
        for entry in &list {
            match &entry.upstream_url {
                None => return Err(refuse(HandleFault::NoAddress)),
                Some(known) if *known == url => return Ok(()),
                Some(_) => {}
            }
        }
        let added = self.upstream();
        list.push(added.clone());
        data.handle = Some(DivideUpstream::write_handle(&list));
        self.effects.push(Effect::Upstream { data, added });
        Ok(())
    }

    /// The upstreams of a selector that a route makes.
    fn first_upstreams(&self) -> Vec<DivideUpstream> {
        if self.dialect == Dialect::Shenyu { Vec::new() } else { vec![self.upstream()] }
    }

    fn create_selector(
        &mut self,
        name: Option<String>,
        first: Vec<DivideUpstream>,
    ) -> Result<(Option<String>, Option<String>), Refusal> {
        let (plugin_id, plugin) = plugin_of(self.body.rpc_type.as_deref());
        let (handle, upstreams) = self.selector_handle(plugin, first);
        if upstreams.as_ref().is_some_and(|upstreams| !upstreams.is_empty()) {
            // Soul's check list cannot hold a selector without name.
            let selector = name.clone().ok_or(Refusal::Missing("contextPath"))?;
            self.node = Some(Node { selector, url: self.url() });
        }
        let pattern = format!("{}/**", name.as_deref().unwrap_or("null"));
        let data = self.new_selector(name, (plugin_id, plugin), handle, pattern);
        let place = (data.id.clone(), data.plugin_name.clone());
        self.effects.push(Effect::Selector { data, upstreams });
        Ok(place)
    }

    fn selector_handle(
        &self,
        plugin: &str,
        first: Vec<DivideUpstream>,
    ) -> (Option<String>, Option<Vec<DivideUpstream>>) {
        match (plugin, self.dialect) {
            ("divide", _) | ("tars" | "grpc", Dialect::V230 | Dialect::Shenyu) => {
                let handle =
                    if first.is_empty() { String::new() } else { DivideUpstream::write_handle(&first) };
                (Some(handle), Some(first))
            }
            ("springCloud", _) => (Some(spring_cloud_handle(self.body.app_name.as_deref())), None),
            ("sofa" | "tars" | "grpc", _) => (self.body.app_name.clone(), None),
            _ => (None, None),
        }
    }

    /// The address as Soul writes it, nulls in words; SpringCloud has none.
    fn url(&self) -> String {
        if self.service == Service::SpringCloud {
            return String::new();
        }
        let port = self.body.port.map_or_else(|| "null".to_owned(), |port| port.to_string());
        format!("{}:{port}", self.body.host.as_deref().unwrap_or("null"))
    }

    fn upstream(&self) -> DivideUpstream {
        let upstream = DivideUpstream::registered(self.url());
        match self.protocol {
            Some(protocol) => DivideUpstream { protocol: Some(protocol.to_owned()), ..upstream },
            None => upstream,
        }
    }

    fn new_selector(
        &mut self,
        name: Option<String>,
        (plugin_id, plugin): (&str, &str),
        handle: Option<String>,
        pattern: String,
    ) -> SelectorData {
        let id = (self.ids)();
        let _condition_id = (self.ids)();
        let (loged, logged) = match self.dialect {
            Dialect::Feb2021 => (Some(true), None),
            Dialect::V230 | Dialect::Shenyu => (None, Some(true)),
        };
        SelectorData {
            id: Some(id),
            plugin_id: Some(plugin_id.to_owned()),
            plugin_name: Some(plugin.to_owned()),
            name,
            match_mode: Some(0),
            kind: Some(1),
            sort: Some(1),
            enabled: Some(true),
            loged,
            logged,
            continued: Some(true),
            handle,
            condition_list: Some(vec![Some(condition("match", pattern))]),
        }
    }

    // === rule ===

    fn wants_rule(&self, known_method: bool) -> bool {
        let body = self.body;
        let named = |name: &Option<String>| name.as_deref().is_some_and(|name| self.stored.has_rule(name));
        if named(&body.rule_name) {
            // The name is a unique column: Soul's RPC kinds, which look for the path, would fail on it.
            return false;
        }
        match self.service {
            Service::SpringMvc | Service::SpringCloud => true,
            Service::Dubbo => !named(&body.path),
            Service::Sofa | Service::Tars | Service::Grpc => !known_method || !named(&body.path),
        }
    }

    fn rule(&mut self, selector_id: Option<String>, plugin: Option<String>) -> Result<(), Refusal> {
        let path = self.body.path.as_deref();
        let key = match self.dialect {
            Dialect::Feb2021 => self.body.rpc_type.as_deref(),
            Dialect::V230 | Dialect::Shenyu => Some(self.service.plugin()),
        };
        let mut handle = rule_handle(self.dialect, key, path)?;
        if self.dialect == Dialect::Feb2021 {
            handle = handle.replace("\"\"", "\"0\"");
        }
        let path = path.ok_or(Refusal::Missing("path"))?;
        let (operator, pattern) = rule_pattern(self.dialect, path);
        let condition = condition(operator, pattern);
        let rule = self.new_rule(self.body.rule_name.clone(), (selector_id, plugin), handle, condition);
        self.effects.push(Effect::Rule(rule));
        Ok(())
    }

    fn new_rule(
        &mut self,
        name: Option<String>,
        (selector_id, plugin_name): (Option<String>, Option<String>),
        handle: String,
        condition: ConditionData,
    ) -> RuleData {
        let id = (self.ids)();
        let _condition_id = (self.ids)();
        RuleData {
            id: Some(id),
            name,
            plugin_name,
            selector_id,
            match_mode: Some(0),
            sort: Some(1),
            enabled: Some(true),
            loged: Some(true),
            handle: Some(handle),
            condition_data_list: Some(vec![Some(condition)]),
        }
    }

    // === context path, 2.3.0 and ShenYu ===

    /// The selector and rule that make gateways of 2.3.0 strip the prefix; a present selector stays as it is.
    ///
    /// Soul strips the first segment, ShenYu the context path whatever its length.
    fn context_path(&mut self) {
        let Some(context) = self.body.context_path.as_deref().filter(|context| !context.is_empty()) else {
            return;
        };
        let name = format!("/context-path{context}");
        if self.stored.selector(&name).is_some() {
            return;
        }
        let pattern = format!("{context}/**");
        let data = self.new_selector(Some(name.clone()), CONTEXT_PATH, None, pattern.clone());
        let place = (data.id.clone(), data.plugin_name.clone());
        self.effects.push(Effect::Selector { data, upstreams: None });
        if self.stored.has_rule(&name) {
            return;
        }
        let segment = match self.dialect {
            Dialect::Shenyu => context.to_owned(),
            Dialect::Feb2021 | Dialect::V230 => context_segment(&pattern),
        };
        // The handle of `context_path` is written for every text.
        let handle = rule_handle(self.dialect, Some(CONTEXT_PATH.1), Some(&segment)).unwrap_or_default();
        let rule = self.new_rule(Some(name), place, handle, condition("match", pattern));
        self.effects.push(Effect::Rule(rule));
    }
}

/// Id and name of the plugin that strips prefixes.
const CONTEXT_PATH: (&str, &str) = ("14", model::CONTEXT_PATH);

/// Id and name of the plugin that a selector of this rpc type goes to; everything unknown is `divide`.
fn plugin_of(rpc_type: Option<&str>) -> (&'static str, &'static str) {
    match rpc_type {
        Some("dubbo") => ("6", "dubbo"),
        Some("springCloud") => ("8", "springCloud"),
        Some("sofa") => ("11", "sofa"),
        Some("tars") => ("13", "tars"),
        Some("grpc") => ("15", "grpc"),
        _ => ("5", model::DIVIDE),
    }
}

/// The condition of a registered selector or rule.
pub(crate) fn condition(operator: &str, value: String) -> ConditionData {
    ConditionData {
        param_type: Some("uri".to_owned()),
        operator: Some(operator.to_owned()),
        param_name: Some("/".to_owned()),
        param_value: Some(value),
    }
}
