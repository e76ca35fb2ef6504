//! A table made after another is the table made from nothing.

use super::*;

#[derive(Clone, Debug)]
enum Edit {
    Put(usize, RuleData),
    PutSelector(usize, SelectorData),
    Remove(usize),
    RemoveSelector(usize),
    Swap(usize, usize),
    /// Equal rows at new addresses: what a fetch gives.
    Refetch,
}

fn edit() -> impl Strategy<Value = Edit> {
    let place = 0usize..16;
    prop_oneof![
        4 => (place.clone(), spoilt_rule()).prop_map(|(at, rule)| Edit::Put(at, rule)),
        2 => (place.clone(), any_selector()).prop_map(|(at, selector)| Edit::PutSelector(at, selector)),
        1 => place.clone().prop_map(Edit::Remove),
        1 => place.clone().prop_map(Edit::RemoveSelector),
        1 => (place.clone(), place).prop_map(|(one, other)| Edit::Swap(one, other)),
        1 => Just(Edit::Refetch),
    ]
}

prop_compose! {
    /// One of a few is refused.
    fn spoilt_rule()(mut rule in any_rule(), spoilt in prop::bool::weighted(0.2)) -> RuleData {
        if spoilt {
            rule.handle = None;
        }
        rule
    }
}

fn apply(edit: Edit, selectors: &mut Vec<Row<SelectorData>>, rules: &mut Vec<Row<RuleData>>) {
    fn put<D>(rows: &mut Vec<D>, at: usize, row: D) {
        match rows.get_mut(at) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
    fn remove<D>(rows: &mut Vec<D>, at: usize) {
        if at < rows.len() {
            rows.remove(at);
        }
    }
    match edit {
        Edit::Put(at, rule) => put(rules, at, Row::from(&rule)),
        Edit::PutSelector(at, selector) => put(selectors, at, Row::from(&selector)),
        Edit::Remove(at) => remove(rules, at),
        Edit::RemoveSelector(at) => remove(selectors, at),
        Edit::Swap(one, other) if one.max(other) < rules.len() => rules.swap(one, other),
        Edit::Swap(..) => {}
        Edit::Refetch => {
            rules.iter_mut().for_each(|row| *row = Row::from(&RuleData::from(&*row)));
            selectors.iter_mut().for_each(|row| *row = Row::from(&SelectorData::from(&*row)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_made_after_another_is_the_one_made_from_nothing(
        mut selectors in prop::collection::vec(any_selector().prop_map(|row| Row::from(&row)), 0..6),
        mut rules in prop::collection::vec(spoilt_rule().prop_map(|row| Row::from(&row)), 0..24),
        edits in prop::collection::vec(edit(), 1..8),
    ) {
        let mut table = compile_after(None, &selectors, &rules, Invalids::Refuse).0;
        for edit in edits {
            apply(edit, &mut selectors, &mut rules);
            let (fresh, expected) = compile_after(None, &selectors, &rules, Invalids::Refuse);
            let (next, refused) = compile_after(Some(&table), &selectors, &rules, Invalids::Refuse);
            prop_assert_eq!(refused, expected);
            let entries = |table: &Table| -> Vec<_> {
                let rules = |s: &CompiledSelector<_, _>| -> Vec<Row<RuleData>> {
                    s.rules().map(|rule: &CompiledRule<String>| rule.row.clone()).collect()
                };
                table.selectors().map(|selector| (selector.row.clone(), rules(selector))).collect()
            };
            prop_assert_eq!(entries(&next), entries(&fresh));
            for path in ["/", "/a", "/a/", "/a/b", "/b/b", "/a/b/c", "/c"] {
                prop_assert_eq!(served(&next, path), served(&fresh, path), "{}", path);
            }
            table = next;
        }
    }
}

#[test]
fn what_did_not_change_is_taken_over() {
    let selectors = packed(&[selector("a", "/a/**"), selector("b", "/b/**")]);
    let paths = ["/a/1", "/a/2", "/a/3", "/b/1"];
    let mut rules: Vec<_> = paths.map(|path| Row::from(&rule(path, &path[1..2], path))).into();
    let first = compile_after(None, &selectors, &rules, Invalids::Refuse).0;
    rules[1] = Row::from(&RuleData { handle: Some("new".to_owned()), ..RuleData::from(&rules[1]) });
    let moved = rules.remove(1);
    rules.insert(2, moved);

    let mut compiled = 0;
    let (second, _) = PluginTable::compile(
        "divide",
        &selectors,
        &rules,
        Invalids::Refuse,
        Some(&first),
        |_, _| -> Result<String, _> { panic!("no selector changed") },
        |rule, former: Option<&String>| {
            compiled += 1;
            assert_eq!((rule.id.as_deref(), former.map(String::as_str)), (Some("/a/2"), Some("handle-/a/2")));
            Ok(rule.handle.clone().unwrap_or_default())
        },
    );
    assert_eq!(compiled, 1);
    let rules_of = |table: &Table| -> Vec<_> { table.selectors().map(|s| Arc::clone(&s.rules)).collect() };
    let (before, after) = (rules_of(&first), rules_of(&second));
    assert!(Arc::ptr_eq(&before[1], &after[1]), "the rules of `b` are the same list");
    let ids: Vec<_> = second.selectors().flat_map(CompiledSelector::rules).map(CompiledRule::id).collect();
    assert_eq!(ids, ["/a/1", "/a/3", "/a/2", "/b/1"]);
}
