use super::*;

fn read(source: &str) -> (Args, Vec<String>) {
    let mut diag = Diagnostics::default();
    let args = parse(source.parse().unwrap(), &mut diag);
    args.require_path("EXAMPLE", &mut diag);
    (args, diag.messages())
}

#[test]
fn every_key_is_read_in_any_order() {
    let (args, messages) = read(
        r##"desc = r#"say "hi""#, path = "/a/{id}/{*rest}", enabled = false, rule_name = "", crate = "crate::x",
            register_meta_data = true, rpc_type = "http", get, state = App<u8, u16>, handler = find::<u8, u16>, post,"##,
    );
    assert_eq!(messages, [""; 0]);
    assert_eq!(args.path().map(LitStr::value).as_deref(), Some("/a/{id}/{*rest}"));
    assert_eq!(args.krate().to_string(), "crate :: x");
    let names: Vec<_> = args.given().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "desc",
            "path",
            "enabled",
            "rule_name",
            "crate",
            "register_meta_data",
            "rpc_type",
            "state",
            "handler"
        ]
    );
    assert_eq!(args.methods().collect::<Vec<_>>(), ["GET", "POST"]);
    assert_eq!(
        args.state().map(|state| state.to_token_stream().to_string()).as_deref(),
        Some("App < u8 , u16 >")
    );
    assert_eq!(names.len(), keys::KEYS.len(), "a new key needs its place in this test");
}

#[test]
fn paths_are_taken_as_written() {
    for path in
        ["/", "/a", "/a/", "//a", "/:id/*rest", "/{id}", "/a/**", "/path/**/name", "/*", "/订单", "/%20"]
    {
        let (args, messages) = read(&format!("path = {path:?}"));
        assert_eq!(messages, [""; 0], "{path}");
        assert_eq!(args.path().map(LitStr::value).as_deref(), Some(path));
    }
}

#[test]
fn crate_is_a_path_bare_or_quoted() {
    for (given, expected) in [
        ("soul", "soul"),
        ("::soul", ":: soul"),
        ("crate::deps::soul", "crate :: deps :: soul"),
        ("\"self::soul\"", "self :: soul"),
        ("$crate::soul", ""),
        ("\"a b\"", ""),
        ("1", ""),
    ] {
        let (args, messages) = read(&format!("path = \"/a\", crate = {given}"));
        if expected.is_empty() {
            assert_eq!(messages.len(), 1, "{given}: {messages:?}");
            assert!(messages[0].starts_with("expected a path to the crate"), "{messages:?}");
        } else {
            assert_eq!((args.krate().to_string().as_str(), messages.len()), (expected, 0), "{given}");
        }
    }
}

/// One line, one mistake: the start of its message and what the message must offer.
#[test]
fn mistakes_say_what_is_right() {
    let cases = [
        ("", "missing `path`", "write `EXAMPLE`"),
        ("desc = \"x\"", "missing `path`", "write `EXAMPLE`"),
        ("\"/x\"", "a value needs its key", "`path = \"/x\"`"),
        ("pth = \"/x\"", "unknown key `pth`", "perhaps `path`"),
        ("path = \"/x\", ruleName = \"x\"", "unknown key `ruleName`", "perhaps `rule_name`"),
        ("path = \"/x\", rule-name = \"x\"", "unknown key `rule-name`", "perhaps `rule_name`"),
        ("path = \"/x\", timeout = 1", "unknown key `timeout`; expected", "`handler`, `crate`"),
        ("path = \"/x\", path = \"/y\"", "`path` is given twice", "keep one"),
        ("path = \"/x\", desc = 1", "expected a string in quotes, found a number", "`desc = "),
        ("path = '/'", "expected a string in quotes, found a character", "`path = "),
        ("path = b\"/x\"", "expected a string in quotes, found a byte string", "`path = "),
        ("path = true", "expected a string in quotes, found a truth value", "`path = "),
        ("path = -1", "expected a string in quotes, found a number", "`path = "),
        ("path = PATH", "expected a string in quotes written here", "constants and macros"),
        ("path = concat!(\"/a\", \"/b\")", "expected a string in quotes written here", "`concat!`"),
        (
            "path = \"/x\", enabled = \"true\"",
            "expected `true` or `false` without quotes",
            "`enabled = true`",
        ),
        ("path = \"/x\", enabled = 1", "expected `true` or `false`, found a number", "`enabled = true`"),
        ("path = \"/x\", enabled = yes", "expected `true` or `false`, found `yes`", "`enabled = true`"),
        ("path = \"/x\", enabled", "`enabled` needs `=` and a value", "`enabled = true`"),
        ("path(\"/x\")", "`path` needs `=` and a value", "`path = \"/x\"`"),
        ("path: \"/x\"", "`path` needs `=` and a value", "`path = \"/x\"`"),
        ("path = \"/x\", fetch", "expected `key = value`", "the keys are `path`"),
        ("path = \"/x\", get, post, get", "`get` is given twice", "keep one"),
        ("path = \"/x\", state = App", "`state` is for a handler that is mounted", "add `get`"),
        ("path = \"/x\", get, state = 1", "expected a type", "`state = AppState`"),
        ("path = \"/x\", handler = find", "`handler` is for a handler that is mounted", "add `get`"),
        ("path = \"/x\", get, handler = 1", "expected the path of a function", "`handler = find::<u64>`"),
        ("path = \"/x\", get, handler = Self::find", "`Self` is unknown", "`Orders::find`"),
        ("path =", "expected a value", "`path = "),
        ("= \"/x\", path = \"/x\"", "expected a key before `=`", "`path`"),
        ("path == \"/x\"", "write a single `=`", "between key and value"),
        ("path => \"/x\"", "write a single `=`", "between key and value"),
        ("path = \"/x\" desc = \"y\"", "expected `,` before `desc`", ""),
        ("path = \"\"", "`path` is empty", "`path = \"/order/save\"`"),
        ("path = \" \\t\"", "`path` is empty", "`path = \"/order/save\"`"),
        ("path = \"order/save\"", "`path` must start with `/`", "write `\"/order/save\"`"),
        ("path = \"http://h:1/x\"", "`path` must start with `/`", "write `\"/x\"`"),
        ("path = \"/a?b=1\"", "`path` must not contain `?`", "query"),
        ("path = \"/a#b\"", "`path` must not contain `#`", "fragment"),
        ("path = \"/a b\"", "`path` must not contain white space", "%20"),
        (
            "path = \"/x\", rpc_type = \"springcloud\"",
            "unknown `rpc_type` `springcloud`",
            "perhaps `\"springCloud\"`",
        ),
        (
            "path = \"/x\", rpc_type = \"dubbo\"",
            "unknown `rpc_type` `dubbo`; expected",
            "`\"http\"`, `\"springCloud\"`",
        ),
    ];
    for (source, start, offer) in cases {
        let (_, messages) = read(source);
        assert_eq!(messages.len(), 1, "{source}: {messages:#?}");
        assert!(messages[0].starts_with(start), "{source}: {messages:#?}");
        assert!(messages[0].contains(offer), "{source}: {messages:#?}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let (_, messages) =
        read("path = \"a b?\", enabled = 0, decs = \"x\", \"y\", rpc_type = \"grpc\" path = \"/x\"");
    let starts = [
        "`path` must start with `/`",
        "`path` must not contain white space",
        "`path` must not contain `?`",
        "expected `true` or `false`",
        "unknown key `decs`, perhaps `desc`",
        "a value needs its key",
        "unknown `rpc_type` `grpc`",
        "expected `,` before `path`",
        "`path` is given twice",
    ];
    assert_eq!(messages.len(), starts.len(), "{messages:#?}");
    for (message, start) in messages.iter().zip(starts) {
        assert!(message.starts_with(start), "{message} / {start}");
    }
}

#[test]
fn values_captured_by_macro_rules_are_seen_through() {
    let group = proc_macro2::Group::new(Delimiter::None, "\"/x\"".parse().unwrap());
    let mut diag = Diagnostics::default();
    let args = parse(quote!(path = #group), &mut diag);
    assert!(diag.is_empty());
    assert_eq!(args.path().map(LitStr::value).as_deref(), Some("/x"));
}
