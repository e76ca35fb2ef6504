use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{
    super::java_regex::JavaRegex,
    segment::{Segment, java_text_of},
    *,
};

/// The table of the specification, section 14.1.
const SPECIFIED: &[(&str, &str, bool)] = &[
    ("/http/**", "/http", true),
    ("/http/**", "/http/", true),
    ("/http/**", "/http/order/save", true),
    ("/http/**", "/httpx", false),
    ("/http/**", "/HTTP/a", false),
    ("/http/*", "/http", false),
    ("/http/*", "/http/", true),
    ("/http/*", "/http/a", true),
    ("/http/*", "/http/a/", false),
    ("/http/*", "/http/a/b", false),
    ("/http/order/path/**", "/http/order/path", true),
    ("/http/order/path/**/name", "/http/order/path/1/name", true),
    ("/http/order/path/**/name", "/http/order/path/name", true),
    ("/http/order/path/**/name", "/http/order/path/1/2/name", true),
    ("/http/order/path/**/name", "/http/order/path/1/name/", true),
    ("/http/order/path/**/name", "/http/order/path/1/nameX", false),
    ("/a/b", "/a/b/", false),
    ("/a/b/", "/a/b", false),
    ("/a/b/", "/a/b/", true),
    ("/a//b", "/a/b", true),
    ("/a/b", "/a//b", true),
    ("/a/t?st", "/a/test", true),
    ("/a/t?st", "/a/tst", false),
    ("/a/*.json", "/a/.json", true),
    ("/a/*.json", "/a/b/x.json", false),
    ("/a/{id}", "/a/7", true),
    ("/a/{id}", "/a/7/8", false),
    ("/a/{id}", "/a/", false),
    ("/a/{id:[0-9]+}", "/a/77", true),
    ("/a/{id:[0-9]+}", "/a/x", false),
    ("/**", "/", true),
    ("/*", "/", true),
    ("**", "/x", false),
    ("a/b", "/a/b", false),
    ("/a**", "/abc", true),
    ("/a**", "/abc/d", false),
    ("/**/c", "/a/b/c", true),
    ("/a/**/b/**/c", "/a/x/b/y/z/c", true),
    ("/a/**/b/**/c", "/a/x/y/c", false),
    ("/", "/", true),
    ("/a*/b", "/a/b", true),
];

#[test]
fn patterns_match_as_specified() {
    for (pattern, path, expected) in SPECIFIED {
        assert_eq!(AntPattern::new(pattern).matches(path), Ok(*expected), "{pattern} {path}");
    }
    assert_eq!(PathPatterns::new(" /x/** , /http/* ").unwrap().matches("/http/a"), Ok(true));
}

#[test]
fn an_unusable_segment_fails_only_when_it_is_tried() {
    let pattern = AntPattern::new("/http/order/{id:[0-9}");
    assert!(pattern.matches("/http/order/1").is_err());
    assert_eq!(pattern.matches("/http/other/1"), Ok(false));
    assert_eq!(pattern.matches("/other/order/1"), Ok(false));
    assert_eq!(pattern.problems().count(), 1);
    // Spring's quick look ahead sees that the first letter differs.
    let pattern = AntPattern::new("/a{id:[0-9}");
    assert_eq!(pattern.matches("/b"), Ok(false));
    assert!(pattern.matches("/a").is_err());
}

#[test]
fn a_list_is_tried_in_order() {
    let list = PathPatterns::new("/ok, /{id:[0-9}").unwrap();
    assert_eq!(list.matches("/ok"), Ok(true));
    assert!(list.matches("/no").is_err());
    let list = PathPatterns::new(" ,\u{3000},").unwrap();
    assert_eq!(list.matches(""), Ok(false));
}

#[test]
fn a_list_has_a_size() {
    assert!(PathPatterns::new(&"/a".repeat(8192)).is_ok());
    assert!(PathPatterns::new(&"/a".repeat(8193)).is_err());
    assert!(PathPatterns::new(&"/{a:b}".repeat(32)).is_ok());
    assert!(PathPatterns::new(&"/{a:b}".repeat(33)).is_err());
}

/// The shortest of several runs, so that another process's turn does not count.
fn shortest(run: impl Fn() -> bool) -> Duration {
    let timed = || {
        let start = Instant::now();
        assert!(!run());
        start.elapsed()
    };
    (0..5).map(|_| timed()).min().unwrap()
}

#[test]
fn many_double_stars_do_not_multiply() {
    let path = "/a".repeat(199) + "/b";
    for pattern in ["/**/**/**/**/a", "/**/a/**/a/**/a/**/a/c/**/b", "/**/a/a/a/a/a/c/**/**/b"] {
        let pattern = AntPattern::new(pattern);
        let taken = shortest(|| pattern.matches(&path).unwrap());
        assert!(taken < Duration::from_millis(1), "{taken:?} for {}", pattern.as_str());
    }
}

#[test]
fn many_stars_do_not_multiply() {
    let path = format!("/{}b", "a".repeat(2000));
    for pattern in ["/*a*a*a*a*a*a*a*a*a*c", "/*a?*a?*a?*a?*c"] {
        let pattern = AntPattern::new(pattern);
        let taken = shortest(|| pattern.matches(&path).unwrap());
        assert!(taken < Duration::from_millis(10), "{taken:?} for {}", pattern.as_str());
    }
}

/// Pieces that make every kind of segment likely.
fn pattern() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "/", "**", "/**", "*", "?", "a", "b", "ab", "{x}", "{x:a+}", "{x:a|ab}", "{", "}", ".",
        "\n", "é",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec!["/", "/", "a", "b", "ab", "aab", ".", "\n", "é", "{x}", "*"]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shapes_agree_with_the_walk(pattern in pattern(), path in path()) {
        let pattern = AntPattern::new(&pattern);
        prop_assume!(pattern.problems().next().is_none());
        let walked = pattern.text.starts_with('/') == path.starts_with('/') && pattern.walk(&compiled(&pattern.text), &path) == Ok(true);
        prop_assert_eq!(pattern.matches(&path), Ok(walked));
    }

    #[test]
    fn the_quick_look_refuses_nothing_that_matches(pattern in pattern(), path in path()) {
        if AntPattern::new(&pattern).matches(&path) == Ok(true) {
            prop_assert!(is_potential(&pattern, &path));
        }
    }

    #[test]
    fn segments_agree_with_springs_expression(
        pattern in prop::collection::vec(
            prop::sample::select(vec!["a", "b", "ab", "*", "?", "{x}", "\n", "é", ".", "\\"]), 1..8),
        part in "[ab.\n\u{e9}\\\\]{1,8}",
    ) {
        let pattern = pattern.concat();
        let segment = Segment::compile(&pattern, 0);
        prop_assume!(!segment.is_any_depth());
        let regex = JavaRegex::new(&java_text_of(&pattern)).unwrap();
        prop_assert_eq!(segment.matches(&pattern, &part), Ok(regex.is_match(&part)));
    }

    #[test]
    fn nothing_panics(list in any::<String>(), path in any::<String>()) {
        if let Ok(list) = PathPatterns::new(&list) {
            let _ = list.matches(&path);
        }
        let _ = AntPattern::new(&list).matches(&list);
    }
}
