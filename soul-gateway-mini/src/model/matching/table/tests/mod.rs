use std::sync::Arc;

use http::HeaderMap;
use proptest::prelude::*;
use soul_client::wire::soul::ConditionData;

use super::{super::condition::Conditions, *};

mod equivalence;
mod reuse;

type Table = PluginTable<String, String>;

fn uri(operator: &str, value: &str) -> Option<ConditionData> {
    Some(ConditionData {
        param_type: Some("uri".to_owned()),
        operator: Some(operator.to_owned()),
        param_name: Some("/".to_owned()),
        param_value: Some(value.to_owned()),
    })
}

fn selector(id: &str, pattern: &str) -> SelectorData {
    SelectorData {
        id: Some(id.to_owned()),
        plugin_name: Some("divide".to_owned()),
        name: Some(format!("name-{id}")),
        match_mode: Some(0),
        kind: Some(1),
        sort: Some(1),
        enabled: Some(true),
        handle: Some(format!("handle-{id}")),
        condition_list: Some(vec![uri("match", pattern)]),
        ..SelectorData::default()
    }
}

fn rule(id: &str, selector: &str, pattern: &str) -> RuleData {
    RuleData {
        id: Some(id.to_owned()),
        name: Some(format!("name-{id}")),
        plugin_name: Some("divide".to_owned()),
        selector_id: Some(selector.to_owned()),
        match_mode: Some(0),
        sort: Some(1),
        enabled: Some(true),
        handle: Some(format!("handle-{id}")),
        condition_data_list: Some(vec![uri("match", pattern)]),
        ..RuleData::default()
    }
}

fn compile(selectors: &[SelectorData], rules: &[RuleData], invalids: Invalids) -> (Table, Vec<Refused>) {
    compile_after(None, &packed(selectors), &packed(rules), invalids)
}

fn compile_after(
    previous: Option<&Table>,
    selectors: &[Row<SelectorData>],
    rules: &[Row<RuleData>],
    invalids: Invalids,
) -> (Table, Vec<Refused>) {
    PluginTable::compile(
        "divide",
        selectors,
        rules,
        invalids,
        previous,
        |selector, _| selector.handle.clone().ok_or_else(|| "is missing".to_owned()),
        |rule, _| rule.handle.clone().ok_or_else(|| "is missing".to_owned()),
    )
}

fn packed<'d, D>(rows: &'d [D]) -> Vec<Row<D>>
where
    Row<D>: From<&'d D>,
{
    rows.iter().map(Row::from).collect()
}

/// Ids of the selector and the rule that serve a path, or which level failed.
fn served(table: &Table, path: &str) -> Result<(Option<String>, Option<String>), Level> {
    let headers = HeaderMap::new();
    let view = RequestView::new("GET", path, None, &headers, [127, 0, 0, 1].into());
    let Some(selector) = table.select(&view).map_err(|_| Level::Selector)? else { return Ok((None, None)) };
    let rule = selector.rule(&view).map_err(|_| Level::Rule)?;
    Ok((Some(selector.id().to_owned()), rule.map(|rule| rule.id().to_owned())))
}

fn pair(selector: &str, rule: &str) -> Result<(Option<String>, Option<String>), Level> {
    let some = |id: &str| (!id.is_empty()).then(|| id.to_owned());
    Ok((some(selector), some(rule)))
}

#[test]
fn lower_sort_wins_and_equals_keep_their_order() {
    let mut selectors = [selector("a", "/**"), selector("b", "/**"), selector("c", "/**")];
    let rules = [rule("1", "a", "/**"), rule("2", "b", "/x/**"), rule("3", "b", "/**")];
    assert_eq!(served(&compile(&selectors, &rules, Invalids::Refuse).0, "/x"), pair("a", "1"));
    selectors[0].sort = Some(2);
    assert_eq!(served(&compile(&selectors, &rules, Invalids::Refuse).0, "/x"), pair("b", "2"));
    assert_eq!(served(&compile(&selectors, &rules, Invalids::Refuse).0, "/y"), pair("b", "3"));
    selectors[2].sort = Some(-1);
    assert_eq!(served(&compile(&selectors, &rules, Invalids::Refuse).0, "/y"), pair("c", ""));
}

#[test]
fn one_selector_only_is_tried() {
    let selectors = [selector("a", "/x/**"), selector("b", "/**")];
    let rules = [rule("1", "a", "/x/1"), rule("2", "b", "/**")];
    let table = compile(&selectors, &rules, Invalids::Refuse).0;
    assert_eq!(served(&table, "/x/2"), pair("a", ""));
    assert_eq!(served(&table, "/y"), pair("b", "2"));
}

#[test]
fn disabled_entries_and_empty_lists_do_not_match() {
    let mut selectors =
        [selector("a", "/**"), selector("b", "/**"), selector("c", "/**"), selector("d", "/**")];
    selectors[0].enabled = Some(false);
    selectors[1].condition_list = Some(Vec::new());
    selectors[2].condition_list = None;
    let mut rules = [rule("1", "d", "/**"), rule("2", "d", "/**")];
    rules[0].enabled = Some(false);
    // A rule without conditions lets everything through if all of them must hold.
    rules[1].condition_data_list = Some(Vec::new());
    let (table, refused) = compile(&selectors, &rules, Invalids::Refuse);
    assert_eq!((served(&table, "/x"), refused), (pair("d", "2"), Vec::new()));
    rules[1].match_mode = Some(1);
    assert_eq!(served(&compile(&selectors, &rules, Invalids::Refuse).0, "/x"), pair("d", ""));
}

#[test]
fn a_full_flow_selector_takes_the_last_rule_whatever_it_says() {
    let mut full = selector("a", "/none");
    (full.kind, full.condition_list) = (Some(0), None);
    let mut rules = [rule("1", "a", "/**"), rule("2", "a", "/none")];
    (rules[1].enabled, rules[1].condition_data_list, rules[1].sort) = (Some(false), None, Some(9));
    let (table, refused) = compile(&[full], &rules, Invalids::Refuse);
    assert_eq!((served(&table, "/x"), refused), (pair("a", "2"), Vec::new()));
}

#[test]
fn other_plugins_are_passed_over() {
    let mut other = selector("a", "/**");
    other.plugin_name = Some("context_path".to_owned());
    let (table, refused) = compile(&[other], &[rule("1", "a", "/**")], Invalids::Refuse);
    assert!(table.is_empty() && refused.is_empty());
}

#[test]
fn entries_carry_what_the_gateway_made_of_them() {
    let mut selectors = [selector("a", "/**")];
    selectors[0].loged = Some(true);
    let table = compile(&selectors, &[rule("1", "a", "/**")], Invalids::Refuse).0;
    let selector = table.selectors().next().unwrap();
    assert_eq!((selector.name(), selector.is_logged()), ("name-a", true));
    assert_eq!(selector.payload(), "handle-a");
    let rule = selector.rules().next().unwrap();
    assert_eq!((rule.name(), rule.payload().as_str(), rule.is_logged()), ("name-1", "handle-1", false));
}

/// The field that is at fault, and what spoils a condition so.
type Spoiler = (&'static str, fn(&mut ConditionData));

fn spoilers() -> [Spoiler; 7] {
    [
        (".operator", |condition| condition.operator = Some(">".to_owned())),
        (".operator", |condition| condition.operator = None),
        (".paramType", |condition| condition.param_type = Some("cookie".to_owned())),
        (".paramValue", |condition| condition.param_value = None),
        (".paramValue", |condition| condition.param_value = Some("/{a:[}".to_owned())),
        (".paramName", |condition| {
            condition.param_type = Some("post".to_owned());
            condition.param_name = Some("startDateTime".to_owned());
        }),
        (".paramValue", |condition| {
            condition.operator = Some("regEx".to_owned());
            condition.param_value = Some("(?=a)".to_owned());
        }),
    ]
}

#[test]
fn what_cannot_be_evaluated_is_refused_by_its_field() {
    for (field, spoil) in spoilers() {
        let mut selectors = [selector("a", "/**"), selector("b", "/**")];
        let mut rules = [rule("1", "b", "/**"), rule("2", "b", "/**")];
        spoil(selectors[0].condition_list.as_mut().unwrap()[0].as_mut().unwrap());
        spoil(rules[0].condition_data_list.as_mut().unwrap()[0].as_mut().unwrap());
        let (table, refused) = compile(&selectors, &rules, Invalids::Refuse);
        assert_eq!(served(&table, "/x"), pair("b", "2"));
        let fields: Vec<_> = refused.iter().map(|refused| refused.field.clone()).collect();
        assert_eq!(fields, [format!("conditionList[0]{field}"), format!("conditionDataList[0]{field}")]);
    }
}

#[test]
fn missing_fields_are_refused_and_said_so() {
    let mut selectors =
        [selector("a", "/**"), selector("b", "/**"), selector("c", "/**"), selector("d", "/**")];
    selectors[0].enabled = None;
    selectors[1].kind = None;
    selectors[2].match_mode = None;
    selectors[3].condition_list = Some(vec![None]);
    let (table, refused) = compile(&selectors, &[], Invalids::Refuse);
    assert!(table.is_empty());
    let shown: Vec<_> = refused.iter().map(Refused::to_string).collect();
    assert_eq!(
        shown,
        [
            "selector `name-a` (id `a`): `enabled`: is missing, expected `true` or `false`",
            "selector `name-b` (id `b`): `type`: is missing, expected 0 (every request) or 1 (by conditions)",
            "selector `name-c` (id `c`): `matchMode`: is missing, expected 0 (all conditions) or 1 (any condition)",
            "selector `name-d` (id `d`): `conditionList[0]`: is null, expected a condition",
        ]
    );
    let mut rules = [rule("1", "e", "/**"), rule("2", "e", "/**")];
    rules[0].condition_data_list = None;
    rules[1].handle = None;
    let (_, refused) = compile(&[selector("e", "/**")], &rules, Invalids::Refuse);
    let fields: Vec<_> = refused.iter().map(|refused| (refused.level, refused.field.as_str())).collect();
    assert_eq!(fields, [(Level::Rule, "conditionDataList"), (Level::Rule, "handle")]);
}

#[test]
fn souls_setting_fails_the_requests_that_reach_the_fault() {
    let mut selectors = [selector("a", "/a/**"), selector("b", "/**")];
    selectors[1].condition_list.as_mut().unwrap()[0].as_mut().unwrap().operator = Some(">".to_owned());
    let mut rules = [rule("1", "a", "/a/1"), rule("2", "a", "/**"), rule("3", "a", "/**")];
    rules[1].match_mode = None;
    let (table, refused) = compile(&selectors, &rules, Invalids::Error);
    assert!(refused.is_empty());
    assert_eq!(served(&table, "/a/1"), pair("a", "1"));
    assert_eq!(served(&table, "/a/2"), Err(Level::Rule));
    assert_eq!(served(&table, "/b"), Err(Level::Selector));
    selectors[0].enabled = None;
    assert_eq!(served(&compile(&selectors, &rules, Invalids::Error).0, "/a/1"), Err(Level::Selector));
}

/// Section 4.1 of the specification, read off entry by entry.
fn naive(selectors: &[SelectorData], rules: &[RuleData], path: &str) -> (Option<String>, Option<String>) {
    let headers = HeaderMap::new();
    let view = RequestView::new("GET", path, None, &headers, [127, 0, 0, 1].into());
    let hold =
        |mode, list: &Option<Vec<_>>| Conditions::compile(mode, list.as_deref()).hold(&view) == Ok(true);
    let mut selectors: Vec<_> = selectors.iter().collect();
    selectors.sort_by_key(|selector| selector.sort);
    let selector = selectors.into_iter().find(|selector| {
        let matches = selector.kind == Some(0)
            || selector.condition_list.as_ref().is_some_and(|list| !list.is_empty())
                && hold(selector.match_mode, &selector.condition_list);
        selector.enabled == Some(true) && matches
    });
    let Some(selector) = selector else { return (None, None) };
    let mut rules: Vec<_> = rules.iter().filter(|rule| rule.selector_id == selector.id).collect();
    rules.sort_by_key(|rule| rule.sort);
    let rule = if selector.kind == Some(0) {
        rules.last().copied()
    } else {
        let matches =
            |rule: &&RuleData| rule.enabled == Some(true) && hold(rule.match_mode, &rule.condition_data_list);
        rules.into_iter().find(matches)
    };
    (selector.id.clone(), rule.and_then(|rule| rule.id.clone()))
}

fn conditions() -> impl Strategy<Value = Vec<Option<ConditionData>>> {
    let condition = prop::sample::select(vec![
        uri("match", "/a/**"),
        uri("match", "/a/*"),
        uri("match", "/**"),
        uri("=", "/a/b"),
        uri("like", "b"),
        uri("regEx", "/[ab]/b"),
    ]);
    prop::collection::vec(condition, 0..3)
}

prop_compose! {
    fn any_selector()(
        id in "[a-d]", kind in 0..2, sort in -1..2, enabled in any::<bool>(), mode in 0..2, list in conditions(),
    ) -> SelectorData {
        SelectorData {
            kind: Some(kind), sort: Some(sort), enabled: Some(enabled), match_mode: Some(mode),
            condition_list: Some(list), ..selector(&id, "")
        }
    }
}

prop_compose! {
    fn any_rule()(
        id in "[0-9]{3}", selector in "[a-d]", sort in -1..2, enabled in any::<bool>(), mode in 0..2,
        list in conditions(),
    ) -> RuleData {
        RuleData {
            sort: Some(sort), enabled: Some(enabled), match_mode: Some(mode), condition_data_list: Some(list),
            ..rule(&id, &selector, "")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_the_plain_ordered_scan(
        selectors in prop::collection::vec(any_selector(), 0..6),
        rules in prop::collection::vec(any_rule(), 0..12),
    ) {
        let (table, refused) = compile(&selectors, &rules, Invalids::Refuse);
        prop_assert!(refused.is_empty());
        for path in ["/", "/a", "/a/", "/a/b", "/b/b", "/a/b/c", "/c"] {
            prop_assert_eq!(served(&table, path), Ok(naive(&selectors, &rules, path)));
        }
    }
}
