//! What the golden vectors do not say.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::wire::soul::{ConditionData, DivideRuleHandle, DivideUpstream, SelectorData};

fn list(text: &str) -> Result<Vec<Option<i64>>, GsonError> {
    from_str(text).map(Option::unwrap_or_default)
}

#[test]
fn reads_what_gson_reads_leniently() {
    let accepted: &[(&str, &[Option<i64>])] = &[
        ("[1,]", &[Some(1), None]),
        ("[,]", &[None, None]),
        ("[;1]", &[None, Some(1)]),
        ("[1;2]", &[Some(1), Some(2)]),
        ("[ 1 /* one */ , 2 // two\n, 3 # three\r]", &[Some(1), Some(2), Some(3)]),
        ("\u{feff}[1]", &[Some(1)]),
        (")]}'\n[1]", &[Some(1)]),
        ("[' 7 ', +5, 007, 1., -0, 5d]", &[Some(7), Some(5), Some(7), Some(1), Some(0), Some(5)]),
        ("[NULL, null]", &[None, None]),
        ("[9223372036854775808]", &[Some(i64::MAX)]),
        ("", &[]),
        (" // nothing", &[]),
        ("null and more", &[]),
    ];
    for (text, expected) in accepted {
        assert_eq!(list(text).as_deref(), Ok(*expected), "{text}");
    }
}

#[test]
fn refuses_what_gson_refuses() {
    for text in [
        "[",
        "]",
        "[1",
        "[1 2]",
        "[1] 2",
        "[1] // end",
        "[1,2",
        "[/*]",
        "['a",
        "[\"\\x\"]",
        "[\"\\u12g4\"]",
        "{",
        "[1.5]",
        "[1e400]",
        "[Infinity]",
        "[NaN]",
        "[nan]",
        "[\u{3000}]",
        "[1]]",
        "[:]",
        "[true]",
        "[[]]",
        "[\u{c}1]",
        "\u{3000}",
    ] {
        assert!(list(text).is_err(), "{text}");
    }
}

#[test]
fn object_syntax_is_lenient() {
    let map = |text: &str| from_str::<BTreeMap<String, String>>(text).map(Option::unwrap_or_default);
    let expected = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x-y".to_owned())]);
    for text in [
        r#"{"a":"1","b":"x-y"}"#,
        "{a=1;b=>x-y}",
        "{'a':1,\"b\":'x-y'}",
        "{a:'\\u0031',b:x-y}",
        "{a:0,a:1,b:x-y}",
    ] {
        assert_eq!(map(text).as_ref(), Ok(&expected), "{text}");
    }
    for text in ["{a:1,}", "{a}", "{a:}", "{a:,b:1}", "{:1}", "{a:1 b:2}", "{a:b/c}", "{a:1]"] {
        assert!(map(text).is_err(), "{text}");
    }
}

#[test]
fn two_escapes_make_one_character_and_half_of_one_is_replaced() {
    let text = |json: &str| from_str::<String>(json).unwrap();
    assert_eq!(text(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
    assert_eq!(text(r#""x\ud83dy""#).as_deref(), Some("x\u{fffd}y"));
    assert_eq!(text("'\\\n\\/\\'\"'").as_deref(), Some("\n/'\""));
}

#[test]
fn errors_name_the_place() {
    let message = |text: &str| from_str::<Vec<SelectorData>>(text).unwrap_err().to_string();
    assert_eq!(message(r#"[{},{"sort":"x"}]"#), "`[1].sort`: expected an integer, found the string `x`");
    assert_eq!(
        message(r#"[{"conditionList":[{"paramType":[]}]}]"#),
        "`[0].conditionList[0].paramType`: expected a string, found an array"
    );
    assert_eq!(message("[{\n\"sort\":1 2}]"), "`[0]`: expected `,` or `}` in an object at line 2 column 10");
    assert_eq!(message("{}"), "expected an array, found an object");
}

#[test]
fn null_means_what_the_wanted_type_makes_of_it() {
    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Wants {
        text: String,
        maybe_text: Option<String>,
        number: Option<i32>,
        flag: bool,
        list: Vec<i32>,
        inner: DivideRuleHandle,
        maybe_inner: Option<DivideRuleHandle>,
        any: Option<serde_json::Value>,
    }
    let text = r#"{"text":null,"maybe_text":null,"number":null,"flag":null,"list":null,"inner":null,
        "maybe_inner":{"timeout":null},"any":null}"#;
    let read: Wants = from_str(text).unwrap().unwrap();
    let inner = Some(DivideRuleHandle::default());
    assert_eq!(
        read,
        Wants { maybe_text: Some(String::new()), maybe_inner: inner.clone(), ..Wants::default() }
    );
    let read: Wants = from_plain(text).unwrap().unwrap();
    assert_eq!(read, Wants { maybe_inner: inner, ..Wants::default() });
}

#[test]
fn null_leaves_an_earlier_number_and_replaces_an_earlier_string() {
    let read: Option<Vec<DivideUpstream>> =
        from_str(r#"[{"weight":5,"weight":null,"weight":null,"upstreamUrl":"a","upstreamUrl":null}]"#)
            .unwrap();
    assert_eq!(
        read,
        Some(vec![DivideUpstream { weight: 5, upstream_url: Some(String::new()), ..Default::default() }])
    );
}

#[test]
fn plain_reading_takes_booleans_for_strings() {
    let name = from_plain::<SelectorData>(r#"{"name":true}"#).unwrap().unwrap().name;
    assert_eq!(name.as_deref(), Some("true"));
    assert!(from_str::<SelectorData>(r#"{"name":true}"#).is_err());
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(from_str::<serde_json::Value>(&nested(255)).is_ok());
    assert!(from_str::<serde_json::Value>(&nested(256)).is_err());
    assert!(from_str::<serde_json::Value>(&"[".repeat(1_000_000)).is_err());
    assert!(from_str::<DivideUpstream>(&format!("{{{}}}", "a:null,".repeat(100_000) + "a:1")).is_ok());
}

#[test]
fn writes_other_values_as_java_does() {
    assert_eq!(to_plain(&(1.0, 1e7, 1.5e-5, 123.25, -0.0)).unwrap(), "[1.0,1.0E7,1.5E-5,123.25,-0.0]");
    assert_eq!(to_soul(&("", " ", Some("a"), None::<i32>)).unwrap(), r#"[null,null,"a",null]"#);
    assert_eq!(
        to_plain("\u{1}\u{7f}/\u{2028}\"\\").unwrap(),
        r#""\u0001"#.to_owned() + "\u{7f}/" + r#"\u2028\"\\""#
    );
    let map = BTreeMap::from([("a=\"", Some(1)), ("b", None)]);
    assert_eq!(to_plain(&map).unwrap(), r#"{"a\u003d\"":1}"#);
    assert_eq!(to_plain(&BTreeMap::from([(5, true)])).unwrap(), r#"{"5":true}"#);
    assert!(to_plain(&f64::NAN).is_err());
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Anything {
    text: String,
    number: i64,
    flag: bool,
    list: Vec<String>,
    maybe: Option<i32>,
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "[\\[\\]{}:=>,;'\"\\\\/#*a-fnrtu0-9.eE+\\- \n\u{e9}\u{3000}]{0,60}") {
        let _ = from_str::<serde_json::Value>(&text);
        let _ = from_str::<Vec<Option<SelectorData>>>(&text);
        let _ = from_plain::<Vec<DivideUpstream>>(&text);
    }

    #[test]
    fn any_unicode_text_is_read_without_a_panic(text in any::<String>()) {
        let _ = from_str::<serde_json::Value>(&text);
        let _ = from_str::<ConditionData>(&text);
    }

    #[test]
    fn what_is_written_reads_back(
        text in any::<String>(), number in any::<i64>(), flag in any::<bool>(), list in any::<Vec<String>>(),
        maybe in any::<Option<i32>>(),
    ) {
        let value = Anything { text, number, flag, list, maybe };
        let written = to_plain(&value).unwrap();
        prop_assert_eq!(from_str::<Anything>(&written).unwrap(), Some(value.clone()));
        // Gson's text is JSON as well.
        prop_assert_eq!(serde_json::from_str::<Anything>(&written).unwrap(), value);
    }
}
