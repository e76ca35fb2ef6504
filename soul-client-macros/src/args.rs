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
mod tests;
