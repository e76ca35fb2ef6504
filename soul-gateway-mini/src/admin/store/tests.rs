use soul_client::wire::soul::{ConfigGroup, DataEventType, DivideUpstream, MetaDataRegisterDto};

use super::*;
use crate::admin::register::{Dialect, Service};

const NOW: i64 = 1_612_368_121_899;

fn store() -> Store {
    let mut store = Store::new(Snowflake::new(1, 1));
    store.take_changes();
    store
}

fn body(path: &str, port: i32) -> MetaDataRegisterDto {
    MetaDataRegisterDto {
        app_name: Some("http".to_owned()),
        context_path: Some("/http".to_owned()),
        path: Some(path.to_owned()),
        rpc_type: Some("http".to_owned()),
        rule_name: Some(path.to_owned()),
        host: Some("10.0.0.2".to_owned()),
        port: Some(port),
        enabled: true,
        ..MetaDataRegisterDto::default()
    }
}

fn register_as(store: &mut Store, dialect: Dialect, body: MetaDataRegisterDto, revive: Revive) -> Applied {
    let registration = Registration { dialect, service: Service::SpringMvc, body, revive };
    store.apply(Command::Register(Box::new(registration)), NOW).unwrap()
}

fn register(store: &mut Store, path: &str, port: i32) -> Applied {
    register_as(store, Dialect::Feb2021, body(path, port), Revive::AfterProbe)
}

fn only_selector(store: &Store) -> &SelectorRow {
    let rows: Vec<_> = store.selectors().iter().collect();
    assert_eq!(rows.len(), 1);
    rows[0]
}

/// A verdict as a probe that begins now would give it.
fn verdict(store: &Store, url: &str, error: Option<&str>) -> Verdict {
    let row = only_selector(store);
    let upstream = row.upstream(url).unwrap();
    Verdict {
        selector: row.id().to_owned(),
        url: url.to_owned(),
        incarnation: upstream.incarnation,
        touched: upstream.touched,
        at_ms: NOW,
        error: error.map(str::to_owned),
    }
}

fn judge(store: &mut Store, verdict: Verdict, now_ms: i64) -> Outcome {
    let verdicts = Verdicts { verdicts: vec![verdict], forget_before_ms: None };
    store.apply(Command::Verdicts(verdicts), now_ms).unwrap().outcome
}

fn edit(store: &mut Store, edit: Edit) -> Result<Applied, Rejected> {
    store.apply(Command::Edit(edit), NOW)
}

fn handle(store: &Store) -> String {
    only_selector(store).published().handle.unwrap()
}

#[test]
fn registration_is_one_revision_with_soul_s_events_in_order() {
    let mut store = store();
    let applied = register(&mut store, "/http/order/save", 8188);
    let Outcome::Changed { events, revision } = applied.outcome else { panic!("no change") };
    assert_eq!((revision, store.revision()), (1, 1));
    let told: Vec<_> = events.iter().map(|event| (event.kind, event.data.group())).collect();
    assert_eq!(
        told,
        [(DataEventType::Update, ConfigGroup::Selector), (DataEventType::Update, ConfigGroup::Rule)]
    );
    assert_eq!(register(&mut store, "/http/order/save", 8188).outcome, Outcome::NoChange);
    assert_eq!(store.revision(), 1);
}

#[test]
fn selectors_carry_the_log_flag_under_both_names() {
    for dialect in [Dialect::Feb2021, Dialect::V230] {
        let mut store = store();
        let applied = register_as(&mut store, dialect, body("/http/a", 1), Revive::AtOnce);
        let GroupData::Selector(published) = store.group(ConfigGroup::Selector) else {
            panic!("no selectors")
        };
        assert!(published.iter().all(|data| (data.loged, data.logged) == (Some(true), Some(true))));
        let Outcome::Changed { events, .. } = applied.outcome else { panic!("no change") };
        let GroupData::Selector(sent) = &events[0].data else { panic!("no selector event") };
        assert_eq!(sent[0], published[0]);
    }
}

#[test]
fn dead_upstream_leaves_the_handle_and_returns_by_itself() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    register(&mut store, "/http/a", 8189);
    let before = handle(&store);
    let dead = verdict(&store, "10.0.0.2:8189", Some("refused"));
    assert!(matches!(judge(&mut store, dead, NOW + 1), Outcome::Changed { revision: 3, .. }));
    assert_eq!(handle(&store), DivideUpstream::write_handle(&[DivideUpstream::registered("10.0.0.2:8188")]));
    assert_eq!(only_selector(&store).upstream("10.0.0.2:8189").unwrap().dead_since, Some(NOW + 1));

    let again = verdict(&store, "10.0.0.2:8189", Some("refused"));
    assert_eq!(judge(&mut store, again, NOW + 2), Outcome::NoChange);
    let alive = verdict(&store, "10.0.0.2:8189", None);
    assert!(matches!(judge(&mut store, alive, NOW + 3), Outcome::Changed { .. }));
    assert_eq!(handle(&store), before, "as before, without a new warm-up");
}

#[test]
fn all_dead_is_an_empty_handle_and_the_rules_stay() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let dead = verdict(&store, "10.0.0.2:8188", Some("refused"));
    judge(&mut store, dead, NOW);
    assert_eq!(handle(&store), "");
    assert_eq!(store.rules().len(), 1);
}

#[test]
fn return_starts_a_warm_up_where_one_is_configured() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let id = only_selector(&store).id().to_owned();
    let patch = UpstreamPatch { warmup: Some(30_000), ..UpstreamPatch::default() };
    edit(&mut store, Edit::Upstream(id, "10.0.0.2:8188".to_owned(), patch)).unwrap();
    for (error, now) in [(Some("refused"), NOW + 10), (None, NOW + 20)] {
        let verdict = verdict(&store, "10.0.0.2:8188", error);
        judge(&mut store, verdict, now);
    }
    assert_eq!(only_selector(&store).upstream("10.0.0.2:8188").unwrap().entry.timestamp, NOW + 20);
}

#[test]
fn verdict_that_a_registration_overtook_says_nothing() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let dead = verdict(&store, "10.0.0.2:8188", Some("refused"));
    register(&mut store, "/http/a", 8188); // the node has just said that it is there
    assert_eq!(judge(&mut store, dead, NOW), Outcome::NoChange);
    assert!(only_selector(&store).upstream("10.0.0.2:8188").unwrap().healthy);
}

#[test]
fn verdict_about_an_earlier_entry_of_the_address_says_nothing() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let dead = verdict(&store, "10.0.0.2:8188", Some("refused"));
    let id = only_selector(&store).id().to_owned();
    edit(&mut store, Edit::DeleteUpstream(id, "10.0.0.2:8188".to_owned())).unwrap();
    assert_eq!(judge(&mut store, dead.clone(), NOW), Outcome::NoChange);
    register(&mut store, "/http/a", 8188);
    assert_eq!(judge(&mut store, dead, NOW), Outcome::NoChange);
    assert!(only_selector(&store).upstream("10.0.0.2:8188").unwrap().healthy);
}

#[test]
fn dead_node_that_registers_is_probed_or_revived() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let dead = verdict(&store, "10.0.0.2:8188", Some("refused"));
    judge(&mut store, dead, NOW);
    let applied = register(&mut store, "/http/a", 8188);
    assert_eq!((applied.outcome, applied.probe.as_deref()), (Outcome::NoChange, Some("10.0.0.2:8188")));
    let applied = register_as(&mut store, Dialect::Feb2021, body("/http/a", 8188), Revive::AtOnce);
    assert!(matches!(applied.outcome, Outcome::Changed { .. }));
    assert!(applied.probe.is_none() && only_selector(&store).upstream("10.0.0.2:8188").unwrap().healthy);
}

#[test]
fn switched_off_upstream_is_not_probed_back_in() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let id = only_selector(&store).id().to_owned();
    let patch = UpstreamPatch { status: Some(false), ..UpstreamPatch::default() };
    edit(&mut store, Edit::Upstream(id, "10.0.0.2:8188".to_owned(), patch)).unwrap();
    for error in [None, Some("refused"), None] {
        let verdict = verdict(&store, "10.0.0.2:8188", error);
        judge(&mut store, verdict, NOW);
    }
    register(&mut store, "/http/a", 8188);
    assert!(handle(&store).contains("\"status\":false"), "{}", handle(&store));
}

#[test]
fn long_dead_upstream_is_forgotten_if_asked() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    register(&mut store, "/http/a", 8189);
    let dead = verdict(&store, "10.0.0.2:8189", Some("refused"));
    judge(&mut store, dead, NOW);
    for (before, left) in [(NOW - 1, 2), (NOW, 1)] {
        let forget = Verdicts { verdicts: Vec::new(), forget_before_ms: Some(before) };
        store.apply(Command::Verdicts(forget), NOW + 1).unwrap();
        assert_eq!(only_selector(&store).upstreams.as_ref().unwrap().len(), left);
    }
}

#[test]
fn deleted_selector_takes_its_rules_along() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    register(&mut store, "/http/b", 8188);
    let id = only_selector(&store).id().to_owned();
    let applied = edit(&mut store, Edit::DeleteSelector(id.clone())).unwrap();
    let Outcome::Changed { events, .. } = applied.outcome else { panic!("no change") };
    let told: Vec<_> = events.iter().map(|event| (event.kind, event.data.group())).collect();
    assert_eq!(
        told,
        [
            (DataEventType::Delete, ConfigGroup::Selector),
            (DataEventType::Delete, ConfigGroup::Rule),
            (DataEventType::Delete, ConfigGroup::Rule)
        ]
    );
    let GroupData::Selector(gone) = &events[0].data else { panic!("no selector event") };
    assert_eq!(gone[0].condition_list, None);
    assert!(store.selectors().is_empty() && store.rules().is_empty());
    assert_eq!(
        edit(&mut store, Edit::DeleteSelector(id.clone())),
        Err(Rejected::NotFound { kind: "selector", id })
    );
}

#[test]
fn rule_keeps_what_a_patch_does_not_name() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let id = store.rules().iter().next().unwrap().id().to_owned();
    let patch =
        RulePatch { load_balance: Some("hash".to_owned()), timeout: Some(500), ..RulePatch::default() };
    edit(&mut store, Edit::Rule(id.clone(), patch.clone())).unwrap();
    let rule = store.rules().by_id(&id).unwrap();
    assert_eq!(rule.handle.as_deref(), Some(r#"{"loadBalance":"hash","retry":0,"timeout":500}"#));
    assert_eq!(edit(&mut store, Edit::Rule(id.clone(), patch)).unwrap().outcome, Outcome::NoChange);
    let patch = RulePatch { handle: Some(r#"{"loadBalance":"fastest"}"#.to_owned()), ..RulePatch::default() };
    assert!(matches!(edit(&mut store, Edit::Rule(id, patch)), Err(Rejected::Invalid(_))));
}

#[test]
fn names_stay_unique() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    register(&mut store, "/http/b", 8188);
    let ids: Vec<String> = store.rules().iter().map(|row| row.id().to_owned()).collect();
    let patch = RulePatch { name: Some("/http/b".to_owned()), ..RulePatch::default() };
    assert!(matches!(
        edit(&mut store, Edit::Rule(ids[0].clone(), patch.clone())),
        Err(Rejected::Exists { .. })
    ));
    assert_eq!(edit(&mut store, Edit::Rule(ids[1].clone(), patch)).unwrap().outcome, Outcome::NoChange);
}

#[test]
fn renamed_selector_is_not_found_by_its_old_name() {
    let mut store = store();
    register(&mut store, "/http/a", 8188);
    let id = only_selector(&store).id().to_owned();
    let patch = SelectorPatch { name: Some("renamed".to_owned()), ..SelectorPatch::default() };
    edit(&mut store, Edit::Selector(id, patch)).unwrap();
    register(&mut store, "/http/a", 8188);
    let names: Vec<_> = store.selectors().iter().map(|row| row.name().to_owned()).collect();
    assert_eq!(names, ["renamed", "/http"]);
}

#[test]
fn foreign_handles_are_kept_as_they_are() {
    let mut store = store();
    for (plugin, text) in [("springCloud", "{\"serviceId\" : \"a\"}"), ("sofa", "bare text")] {
        let patch = SelectorPatch {
            name: Some(plugin.to_owned()),
            handle: Some(text.to_owned()),
            ..SelectorPatch::default()
        };
        let new = NewSelector { plugin: plugin.to_owned(), patch, upstreams: None };
        edit(&mut store, Edit::NewSelector(Box::new(new))).unwrap();
        let row = store.selectors().by_name(plugin).unwrap();
        assert_eq!(row.published().handle.as_deref(), Some(text));
    }
}

#[test]
fn saved_store_is_restored_row_by_row() {
    let mut store = Store::new(Snowflake::new(1, 1));
    register(&mut store, "/http/a", 8188);
    register_as(&mut store, Dialect::V230, body("/http/b", 8189), Revive::AtOnce);
    let rows = |store: &mut Store| -> Vec<SavedRow> {
        let changes = store.take_changes().into_iter();
        changes
            .filter_map(|RowChange { table, place, row }| Some(SavedRow { table, place, row: row? }))
            .collect()
    };
    let saved = Saved { revision: store.revision(), next_place: store.next_place(), rows: rows(&mut store) };
    let mut restored = Store::restore(saved, Snowflake::new(2, 2)).unwrap();
    for group in ConfigGroup::ALL {
        assert_eq!(restored.group(group), store.group(group), "{group}");
    }
    assert_eq!(restored.revision(), store.revision());
    assert_eq!(register(&mut restored, "/http/a", 8188).outcome, Outcome::NoChange);
}

#[test]
fn changes_saved_one_by_one_are_the_whole() {
    // A store rebuilt from the rows of every step is the store itself.
    let mut store = Store::new(Snowflake::new(1, 1));
    let mut disk = std::collections::BTreeMap::new();
    let mut keep = |store: &mut Store| {
        for RowChange { table, place, row } in store.take_changes() {
            match row {
                Some(row) => drop(disk.insert((table, place), row)),
                None => drop(disk.remove(&(table, place))),
            }
        }
        let rows =
            disk.iter().map(|(&(table, place), row)| SavedRow { table, place, row: row.clone() }).collect();
        let saved = Saved { revision: store.revision(), next_place: store.next_place(), rows };
        let restored = Store::restore(saved, Snowflake::new(1, 1)).unwrap();
        for group in ConfigGroup::ALL {
            assert_eq!(restored.group(group), store.group(group), "{group}");
        }
    };
    keep(&mut store);
    register(&mut store, "/http/a", 8188);
    keep(&mut store);
    let dead = verdict(&store, "10.0.0.2:8188", Some("refused"));
    judge(&mut store, dead, NOW);
    keep(&mut store);
    let id = only_selector(&store).id().to_owned();
    edit(&mut store, Edit::Selector(id.clone(), SelectorPatch { sort: Some(9), ..SelectorPatch::default() }))
        .unwrap();
    keep(&mut store);
    edit(&mut store, Edit::DeleteSelector(id)).unwrap();
    keep(&mut store);
}

#[test]
fn rpc_metadata_is_made_once_and_then_updated() {
    let mut store = store();
    let mut body = MetaDataRegisterDto {
        service_name: Some("Service".to_owned()),
        method_name: Some("save".to_owned()),
        rpc_type: Some("sofa".to_owned()),
        rpc_ext: Some("{}".to_owned()),
        ..body("/http/save", 1)
    };
    let mut send = |body: &MetaDataRegisterDto| {
        let registration = Registration {
            dialect: Dialect::Feb2021,
            service: Service::Sofa,
            body: body.clone(),
            revive: Revive::AtOnce,
        };
        store.apply(Command::Register(Box::new(registration)), NOW)
    };
    assert!(matches!(send(&body).unwrap().outcome, Outcome::Changed { .. }));
    assert_eq!(send(&body).unwrap().outcome, Outcome::NoChange);
    body.rpc_ext = Some("{\"timeout\":1}".to_owned());
    let Outcome::Changed { events, .. } = send(&body).unwrap().outcome else { panic!("no change") };
    assert_eq!(events[0].kind, DataEventType::Update);
    body.method_name = Some("other".to_owned());
    assert_eq!(send(&body), Err(Rejected::PathTaken));
    assert_eq!(store.meta_data().len(), 1);
}

fn say(store: &mut Store, event: InstanceEvent, port: i32, revive: Revive) -> Result<Applied, Rejected> {
    let body = body("", port);
    let (dialect, service) = (Dialect::Shenyu, Service::SpringMvc);
    let report = Report { dialect, service, body, protocol: "http://".to_owned(), event, revive };
    store.apply(Command::Instance(Box::new(report)), NOW)
}

#[test]
fn instance_that_leaves_is_gone_and_a_verdict_of_it_says_nothing() {
    let mut store = store();
    for port in [8188, 8189] {
        say(&mut store, InstanceEvent::Listens, port, Revive::AfterProbe).unwrap();
    }
    let under_way = verdict(&store, "10.0.0.2:8188", None);
    let left = say(&mut store, InstanceEvent::Leaves, 8188, Revive::AfterProbe).unwrap();
    assert!(matches!(left.outcome, Outcome::Changed { .. }));
    assert_eq!(handle(&store), DivideUpstream::write_handle(&[DivideUpstream::registered("10.0.0.2:8189")]));
    assert_eq!(judge(&mut store, under_way, NOW), Outcome::NoChange);
    let again = say(&mut store, InstanceEvent::Leaves, 8188, Revive::AfterProbe).unwrap();
    assert_eq!(again.outcome, Outcome::NoChange);
}

#[test]
fn heartbeat_keeps_an_instance_and_makes_none() {
    let mut store = store();
    let unknown = say(&mut store, InstanceEvent::Beats, 8188, Revive::AtOnce).unwrap_err();
    assert_eq!(unknown.to_string(), "no upstream `10.0.0.2:8188`");
    say(&mut store, InstanceEvent::Listens, 8188, Revive::AtOnce).unwrap();
    let late = verdict(&store, "10.0.0.2:8188", Some("refused"));
    let beat = say(&mut store, InstanceEvent::Beats, 8188, Revive::AtOnce).unwrap();
    assert_eq!(beat.outcome, Outcome::NoChange);
    assert_eq!(judge(&mut store, late, NOW), Outcome::NoChange, "it has spoken since that probe began");

    let dead = verdict(&store, "10.0.0.2:8188", Some("refused"));
    judge(&mut store, dead, NOW);
    let probed = say(&mut store, InstanceEvent::Beats, 8188, Revive::AfterProbe).unwrap();
    assert_eq!(probed.probe.as_deref(), Some("10.0.0.2:8188"));
    assert_eq!(handle(&store), "");
    say(&mut store, InstanceEvent::Beats, 8188, Revive::AtOnce).unwrap();
    assert_ne!(handle(&store), "");
}

#[test]
fn instance_that_comes_back_with_another_protocol_has_that() {
    let mut store = store();
    say(&mut store, InstanceEvent::Listens, 8188, Revive::AtOnce).unwrap();
    let body = body("", 8188);
    let (dialect, service, revive) = (Dialect::Shenyu, Service::SpringMvc, Revive::AtOnce);
    let (protocol, event) = ("https://".to_owned(), InstanceEvent::Listens);
    let report = Report { dialect, service, body, protocol, event, revive };
    store.apply(Command::Instance(Box::new(report)), NOW).unwrap();
    let row = only_selector(&store);
    assert_eq!(row.upstreams.as_ref().unwrap().len(), 1);
    assert_eq!(row.upstream("10.0.0.2:8188").unwrap().entry.protocol.as_deref(), Some("https://"));
}
