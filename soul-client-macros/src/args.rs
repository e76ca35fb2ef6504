//! Reads the arguments of the attribute: `key = value`, separated by commas.
//!
//! After a mistake reading goes on at the next comma (or at the next thing that looks like a key), so
//! that every mistake is reported; what a value may be is judged in [`crate::value`].

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{ExprPath, Lit, LitStr, Type};

use crate::diag::Diagnostics;
use crate::keys::{self, Key};
use crate::value::{self, Value};

/// Arguments that stood the checks; complete only if no mistake was reported.
#[derive(Default)]
pub(crate) struct Args {
    /// Names in `axum::routing::MethodFilter`, for a handler that is mounted; empty for `any`.
    methods: Vec<(&'static str, Span)>,
    given: Vec<(&'static Key, Value)>,
    /// The type whose impl block the handler stands in, as the annotation of that block says.
    owner: Option<Type>,
    /// Whether the path was evidently meant to be given, so that it is not reported as missing too.
    path_meant: bool,
}

impl Args {
    /// Reports that the path is missing, if it is. `example` is a whole annotation.
    pub(crate) fn require_path(&self, example: &str, diag: &mut Diagnostics) {
        if !self.path_meant {
            diag.at_span(Span::call_site(), format_args!("missing `path`: write `{example}`"));
        }
    }

    /// The path of the route or class.
    pub(crate) fn path(&self) -> Option<&LitStr> {
        self.given.iter().find_map(|(_, value)| match value {
            Value::Path(path) => Some(path),
            _ => None,
        })
    }

    /// Where the crate `soul-client` is found from the annotated item.
    pub(crate) fn krate(&self) -> TokenStream {
        let given = self.given.iter().find_map(|(_, value)| match value {
            Value::Crate(path) => Some(path.to_token_stream()),
            _ => None,
        });
        given.unwrap_or_else(|| quote!(::soul_client))
    }

    /// The methods that the handler is mounted for, if it is; an empty name is every method.
    pub(crate) fn methods(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.methods.iter().map(|(name, _)| *name)
    }

    /// Where the first word stands that only a handler can have.
    pub(crate) fn mounted_at(&self) -> Option<Span> {
        self.methods.first().map(|(_, span)| *span)
    }

    /// The state that a mounted handler takes.
    pub(crate) fn state(&self) -> Option<&Type> {
        self.given.iter().find_map(|(_, value)| match value {
            Value::Type(state) => Some(&**state),
            _ => None,
        })
    }

    /// What is mounted, where that is not the annotated function by its plain name.
    pub(crate) fn handler(&self) -> Option<&ExprPath> {
        self.given.iter().find_map(|(_, value)| match value {
            Value::Handler(handler) => Some(&**handler),
            _ => None,
        })
    }

    /// The type whose annotated impl block the handler stands in.
    pub(crate) fn owner(&self) -> Option<&Type> {
        self.owner.as_ref()
    }

    /// Every key that was given, with its value.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.given.iter().map(|(key, value)| (key.name, value))
    }
}

/// Reads the arguments and reports every mistake in them, but for a missing path: see [`Args::require_path`].
///
/// ```text
/// ARGS:  (ARG (, ARG)* ,?)?
/// ARG:   KEY = STRING | KEY = true | KEY = false | state = TYPE | handler = PATH | crate = PATH | METHOD
///        | impl = TYPE        (written by the annotation of an impl block, see `owner.rs`)
/// ```
pub(crate) fn parse(tokens: TokenStream, diag: &mut Diagnostics) -> Args {
    let mut reader = Reader { seen: Vec::new(), args: Args::default(), diag };
    for segment in segments(tokens) {
        reader.segment(&segment);
    }
    let args = reader.args;
    if args.methods.is_empty() {
        if let Some(state) = args.state() {
            diag.at(state, "`state` is for a handler that is mounted: add `get` or another method");
        }
        if let Some(handler) = args.handler() {
            diag.at(handler, "`handler` is for a handler that is mounted: add `get` or another method");
        }
    }
    args
}

/// Splits at commas. Braces and parentheses are single tokens here, so their commas do not count; nor do those
/// between the angle brackets of a type.
fn segments(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut segments = vec![Vec::new()];
    let (mut angles, mut before) = (0_usize, ' ');
    for token in tokens {
        let mark = if let TokenTree::Punct(punct) = &token { punct.as_char() } else { ' ' };
        match mark {
            '<' => angles += 1,
            // Not that of `=>` or `->`.
            '>' if !['=', '-'].contains(&before) => angles = angles.saturating_sub(1),
            _ => {}
        }
        before = mark;
        match segments.last_mut() {
            _ if mark == ',' && angles == 0 => segments.push(Vec::new()),
            Some(last) => last.push(token),
            None => segments.push(vec![token]),
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

struct Reader<'a> {
    /// Keys already met, valid or not, to refuse repeats.
    seen: Vec<&'static str>,
    args: Args,
    diag: &'a mut Diagnostics,
}

impl Reader<'_> {
    /// Reads `KEY = VALUE`, and another one behind it if only the comma was forgotten.
    fn segment(&mut self, tokens: &[TokenTree]) {
        let Some(equals) = tokens.iter().position(|token| is_punct(token, '=')) else {
            return self.without_equals(tokens);
        };
        let (key, value) = (&tokens[..equals], &tokens[equals + 1..]);
        if let [TokenTree::Ident(word)] = key
            && word == "impl"
            && let Ok(owner) = syn::parse2::<Type>(value.iter().cloned().collect())
        {
            self.args.owner = Some(owner);
            return;
        }
        let key = self.key(key, &tokens[equals]);
        let value = self.without_operators(value);
        let next = value.iter().position(|token| is_punct(token, '=')).map_or(value.len(), |at| at - 1);
        let (value, rest) = value.split_at(next);
        match (key, value.is_empty()) {
            (Some(key), true) => {
                self.diag.at(&tokens[equals], format_args!("expected a value: `{}`", key.example));
            }
            (Some(key), false) => self.value(key, value),
            (None, _) => {}
        }
        if let Some(first) = rest.first() {
            self.diag.at(first, format_args!("expected `,` before `{first}`"));
            self.segment(rest);
        }
    }

    /// Skips what makes `==` or `=>` out of the `=` before `value`.
    fn without_operators<'t>(&mut self, value: &'t [TokenTree]) -> &'t [TokenTree] {
        let behind = value.iter().take_while(|token| is_punct(token, '=') || is_punct(token, '>')).count();
        let (operators, value) = value.split_at(behind);
        if let Some(first) = operators.first() {
            self.diag.at(first, "write a single `=` between key and value");
        }
        value
    }

    /// Finds the key; `None` after a mistake was reported.
    fn key(&mut self, tokens: &[TokenTree], equals: &TokenTree) -> Option<&'static Key> {
        let Some(first) = tokens.first() else {
            self.diag.at(equals, format_args!("expected a key before `=`, one of {}", keys::expected()));
            return None;
        };
        let name: String = tokens.iter().map(ToString::to_string).collect();
        let shown = TokenStream::from_iter(tokens.iter().cloned());
        let Some(key) = keys::find(&name) else {
            let nearest = keys::nearest(&name);
            self.args.path_meant |= nearest.is_some_and(|key| key.name == "path");
            let hint = nearest.map_or(String::new(), |key| format!(", perhaps `{}`", key.name));
            self.diag
                .at(shown, format_args!("unknown key `{name}`{hint}; expected one of {}", keys::expected()));
            return None;
        };
        self.args.path_meant |= key.name == "path";
        if self.seen.contains(&key.name) {
            self.diag.at(first, format_args!("`{name}` is given twice: keep one of them"));
            return None;
        }
        self.seen.push(key.name);
        Some(key)
    }

    fn value(&mut self, key: &'static Key, tokens: &[TokenTree]) {
        if let Some(value) = value::parse(key, tokens, self.diag) {
            self.args.given.push((key, value));
        }
    }

    /// Says how to write what stands without `=`: a bare string, a bare word, or `key(value)`.
    fn without_equals(&mut self, tokens: &[TokenTree]) {
        let shown = TokenStream::from_iter(tokens.iter().cloned());
        if let [token] = tokens
            && let Ok(Lit::Str(text)) = value::literal(token)
        {
            self.args.path_meant = true;
            self.diag.at(shown, format_args!("a value needs its key: `path = {}`", text.token()));
            return;
        }
        let name = tokens.first().map(ToString::to_string).unwrap_or_default();
        if let ([TokenTree::Ident(word)], Some((_, method))) =
            (tokens, keys::METHODS.iter().find(|(method, _)| *method == name))
        {
            if self.args.methods.iter().any(|(known, _)| known == method) {
                self.diag.at(word, format_args!("`{name}` is given twice: keep one of them"));
            }
            self.args.methods.push((method, word.span()));
            return;
        }
        let Some(key) = keys::find(&name) else {
            let nearest =
                keys::nearest(&name).map_or(String::new(), |key| format!(" such as `{}`", key.example));
            self.diag.at(
                shown,
                format_args!(
                    "expected `key = value`{nearest}, or a method such as `get`; the keys are {}",
                    keys::expected()
                ),
            );
            return;
        };
        self.args.path_meant |= key.name == "path";
        let example = match &tokens[1..] {
            [TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
                format!("{name} = {}", group.stream())
            }
            [TokenTree::Punct(_), TokenTree::Literal(value)] => format!("{name} = {value}"),
            _ => key.example.to_owned(),
        };
        self.diag.at(shown, format_args!("`{name}` needs `=` and a value: `{example}`"));
    }
}

fn is_punct(token: &TokenTree, expected: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == expected)
}

#[cfg(test)]
mod tests {
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
}
