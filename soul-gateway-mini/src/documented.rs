//! What `API.md` lists is what there is, for the tests of both parts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const PAGE: &str = include_str!("../API.md");

/// The rows of a section's tables, each by the names in backticks in its first cell; the other cells follow.
fn rows(section: &str) -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let heading = format!("### {section}\n");
    let (_, section) = PAGE.split_once(&heading).unwrap_or_else(|| panic!("no `{}`", heading.trim()));
    let lines = section.lines().take_while(|line| !line.starts_with('#'));
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    lines
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let mut cells = cells(line);
            (cells.remove(0).split('`').skip(1).step_by(2).collect(), cells)
        })
        .collect()
}

fn names(section: &str) -> BTreeSet<String> {
    let names: Vec<_> = rows(section).into_iter().flat_map(|(names, _)| names).collect();
    let all: BTreeSet<_> = names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(all.len(), names.len(), "a name stands twice: {names:?}");
    all
}

/// The paths of all values: `a.b`, and `a[].b` in lists of objects.
fn paths(value: &Value, before: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let dot = if before.is_empty() { "" } else { "." };
            fields.iter().for_each(|(name, value)| paths(value, &format!("{before}{dot}{name}"), found));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| paths(item, &format!("{before}[]"), found));
        }
        _ => drop(found.insert(before.to_owned())),
    }
}

/// The section lists the fields of a document, all of them and no others.
///
/// # Panics
/// When it does not.
#[track_caller]
pub(crate) fn check_fields(section: &str, document: &Value) {
    let mut found = BTreeSet::new();
    paths(document, "", &mut found);
    assert_eq!(names(section), found, "`{section}` in API.md against what there is");
}

/// A family of metrics.
#[derive(Default)]
struct Family<'t> {
    kind: &'t str,
    /// Those of its series, if there are any.
    labels: Option<Vec<&'t str>>,
    help: &'t str,
}

fn families(text: &str) -> BTreeMap<&str, Family<'_>> {
    let mut families: BTreeMap<_, Family<'_>> = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (of, help) = help.split_once(' ').unwrap_or((help, ""));
            name = of;
            families.entry(name).or_default().help = help.trim_end_matches('.');
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            families.entry(name).or_default().kind = kind.rsplit(' ').next().unwrap_or_default();
        } else {
            let labels = line.split_once('{').map_or("", |(_, labels)| labels);
            // Every second piece is a value; what is before it ends with its name.
            let labels = labels.split('"').step_by(2).filter_map(|piece| piece.strip_suffix('='));
            let labels = labels.map(|label| label.trim_start_matches(',')).filter(|label| *label != "le");
            families.entry(name).or_default().labels = Some(labels.collect());
        }
    }
    families
}

/// The section lists the metrics of a text, all of them and no others, with kind, labels and meaning.
///
/// # Panics
/// With the rows that are missing.
#[track_caller]
pub(crate) fn check_metrics(section: &str, text: &str) {
    let families = families(text);
    let listed: BTreeMap<_, _> = rows(section).into_iter().map(|(names, cells)| (names[0], cells)).collect();
    let missing = families.iter().filter_map(|(name, Family { kind, labels, help })| {
        let cells = listed.get(name);
        let labels = match labels.as_deref() {
            None => cells.and_then(|cells| cells.get(1).copied()).unwrap_or("?").to_owned(),
            Some([]) => "–".to_owned(),
            Some(labels) => labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", "),
        };
        (cells != Some(&vec![*kind, &labels, *help]))
            .then(|| format!("| `{name}` | {kind} | {labels} | {help} |"))
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "put these rows into `{section}` in API.md:\n{}", missing.join("\n"));
    let gone: Vec<_> = listed.keys().filter(|name| !families.contains_key(*name)).collect();
    assert!(gone.is_empty(), "`{section}` in API.md lists what there is not: {gone:?}");
}

#[test]
fn families_and_fields_are_read_as_they_are_written() {
    let text = "# HELP a_total Help, or not.\n# TYPE a_total counter\na_total{x=\"1 {,\",y=\"z\"} 1\n\
                # HELP b_seconds Time\n# TYPE b_seconds histogram\nb_seconds_bucket{of=\"a\",le=\"1\"} 1\n\
                # HELP c Count\n# TYPE c gauge\n# HELP d Count\n# TYPE d gauge\nd 1\n";
    let read: Vec<_> = families(text).into_iter().map(|(n, f)| (n, f.kind, f.labels, f.help)).collect();
    assert_eq!(
        read,
        [
            ("a_total", "counter", Some(vec!["x", "y"]), "Help, or not"),
            ("b_seconds", "histogram", Some(vec!["of"]), "Time"),
            ("c", "gauge", None, "Count"),
            ("d", "gauge", Some(vec![]), "Count"),
        ]
    );
    let mut found = BTreeSet::new();
    paths(
        &serde_json::json!({"a": 1, "b": {"c": null}, "d": [{"e": 1}, {"f": 2}], "g": [1]}),
        "",
        &mut found,
    );
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "b.c", "d[].e", "d[].f", "g"]);
}
