//! What Prometheus and `promtool check metrics` ask of a text of metrics, for the tests of both parts.

use std::collections::HashSet;

/// Media type of the text format 0.0.4.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Checks a whole text.
///
/// # Panics
/// With the line that is wrong: a family without help or type, a sample outside of its family, a series that
/// stands twice, a counter without `_total`, a value that is no number, or anything only OpenMetrics knows.
#[track_caller]
pub(crate) fn check(text: &str) {
    assert!(text.ends_with('\n'), "the last line has no end: {text}");
    let (mut families, mut series) = (HashSet::new(), HashSet::new());
    let (mut helped, mut family, mut kind) = ("", "", "");
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').unwrap_or_else(|| panic!("no help: {line}")).0;
        } else if let Some(told) = line.strip_prefix("# TYPE ") {
            (family, kind) = told.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
            assert_eq!(helped, family, "help and type are of one family: {line}");
            assert!(families.insert(family), "the family stands twice: {line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(family.ends_with("_total"), kind == "counter", "{line}");
        } else {
            assert!(!line.starts_with('#'), "Prometheus does not know this: {line}");
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
            assert!(value.parse::<f64>().is_ok(), "no number: {line}");
            assert!(series.insert(name), "the series stands twice: {line}");
            let name = name.split('{').next().unwrap_or_default();
            let part = name.strip_prefix(family).unwrap_or_else(|| panic!("not of `{family}`: {line}"));
            let parts: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(parts.contains(&part), "not of `{family}`: {line}");
        }
    }
    assert!(!series.is_empty(), "no series");
}

#[test]
fn what_only_openmetrics_knows_is_refused() {
    check("# HELP a_total Help.\n# TYPE a_total counter\na_total{x=\"1 2\"} 1\n");
    for wrong in [
        "# HELP a Help.\n# TYPE a counter\na_total 1\n",
        "# HELP a Help.\n# TYPE a gauge\n# UNIT a seconds\na 1\n",
        "# HELP a Help.\n# TYPE a gauge\na 1\n# EOF\n",
        "# TYPE a gauge\na 1\n",
        "# HELP a Help.\n# TYPE a gauge\na 1\na 2\n",
    ] {
        assert!(std::panic::catch_unwind(|| check(wrong)).is_err(), "{wrong}");
    }
}
