//! What a value may be, and what is said when it is something else.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{ExprPath, Lit, LitBool, LitStr, Path, Type};

use crate::diag::Diagnostics;
use crate::keys::{Form, Key, RPC_TYPES};

/// A value that stood the checks of its form.
pub(crate) enum Value {
    Path(LitStr),
    Text(LitStr),
    /// Name of the variant of `RpcType`.
    RpcType(&'static str),
    Flag(LitBool),
    Type(Box<Type>),
    Handler(Box<ExprPath>),
    Crate(Path),
}

/// Reads the value of `key`; `None` after its mistakes were reported. `tokens` is not empty.
pub(crate) fn parse(key: &Key, tokens: &[TokenTree], diag: &mut Diagnostics) -> Option<Value> {
    if key.form == Form::Crate {
        return parse_crate(key, tokens, diag);
    }
    if key.form == Form::Type {
        return parse_type(key, tokens, diag);
    }
    if key.form == Form::Handler {
        return parse_handler(key, tokens, diag);
    }
    let literal = match tokens {
        [token] => literal(token),
        _ => Err(NotLiteral),
    };
    match (literal, key.form) {
        (Ok(Lit::Str(text)), Form::Path) => check_path(&text, diag).then_some(Value::Path(text)),
        (Ok(Lit::Str(text)), Form::Text) => Some(Value::Text(text)),
        (Ok(Lit::Str(text)), Form::RpcType) => check_rpc_type(&text, diag).map(Value::RpcType),
        (Ok(Lit::Bool(flag)), Form::Flag) => Some(Value::Flag(flag)),
        (literal, _) => {
            refuse(key, tokens, literal, diag);
            None
        }
    }
}

/// The value is an expression that the attribute cannot evaluate.
#[derive(Debug)]
pub(crate) struct NotLiteral;

/// Reads one token as a literal, looking through the invisible group that `macro_rules!` puts around
/// what it captured.
pub(crate) fn literal(token: &TokenTree) -> Result<Lit, NotLiteral> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            match inner.as_slice() {
                [token] => literal(token),
                _ => Err(NotLiteral),
            }
        }
        token => syn::parse2(TokenStream::from(token.clone())).map_err(|_| NotLiteral),
    }
}

/// Says why a value of the wrong kind is none, and what is right.
fn refuse(key: &Key, tokens: &[TokenTree], literal: Result<Lit, NotLiteral>, diag: &mut Diagnostics) {
    let shown = TokenStream::from_iter(tokens.iter().cloned());
    let wanted = if key.form == Form::Flag { "`true` or `false`" } else { "a string in quotes" };
    let message = match literal {
        Ok(Lit::Str(text)) if ["true", "false"].contains(&text.value().as_str()) => {
            format!("expected {wanted} without quotes: `{} = {}`", key.name, text.value())
        }
        Ok(literal) => format!("expected {wanted}, found {}: `{}`", describe(&literal), key.example),
        Err(NotLiteral) if matches!(tokens, [TokenTree::Punct(_), TokenTree::Literal(_)]) => {
            format!("expected {wanted}, found a number: `{}`", key.example)
        }
        Err(NotLiteral) if key.form == Form::Flag => {
            format!("expected {wanted}, found `{shown}`: `{}`", key.example)
        }
        Err(NotLiteral) => format!(
            "expected {wanted} written here, as in `{}`: an attribute sees only the words of the source, \
             constants and macros such as `concat!` have no value yet",
            key.example
        ),
    };
    diag.at(shown, message);
}

fn describe(literal: &Lit) -> &'static str {
    match literal {
        Lit::Str(_) => "a string",
        Lit::ByteStr(_) => "a byte string",
        Lit::CStr(_) => "a C string",
        Lit::Byte(_) => "a byte",
        Lit::Char(_) => "a character",
        Lit::Int(_) | Lit::Float(_) => "a number",
        Lit::Bool(_) => "a truth value",
        _ => "something else",
    }
}

/// Reports everything that keeps `literal` from being the path of a route.
///
/// Wildcards and `{id}`, `{*rest}` or `:id` segments pass: they are registered as written.
fn check_path(literal: &LitStr, diag: &mut Diagnostics) -> bool {
    let path = literal.value();
    if path.trim().is_empty() {
        diag.at(
            literal,
            "`path` is empty: write the path below the context path, as in `path = \"/order/save\"`",
        );
        return false;
    }
    let mut complaints = Vec::new();
    if path.contains(char::is_whitespace) {
        complaints.push("`path` must not contain white space; in a request it would be `%20`".to_owned());
    }
    if path.contains('?') {
        complaints.push("`path` must not contain `?`: a query is no part of a route".to_owned());
    }
    if path.contains('#') {
        complaints.push("`path` must not contain `#`: a fragment never reaches a server".to_owned());
    }
    if !path.starts_with('/') {
        let hint = match with_slash(&path) {
            Some(better) if complaints.is_empty() => format!(": write `{better:?}`"),
            _ => String::new(),
        };
        complaints.insert(0, format!("`path` must start with `/`, below the context path{hint}"));
    }
    for complaint in &complaints {
        diag.at(literal, complaint);
    }
    complaints.is_empty()
}

/// What a path without leading slash most likely means; a URL means its path.
fn with_slash(path: &str) -> Option<String> {
    match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map(|slash| rest[slash..].to_owned()),
        None => Some(format!("/{path}")),
    }
}

fn check_rpc_type(literal: &LitStr, diag: &mut Diagnostics) -> Option<&'static str> {
    let given = literal.value();
    if let Some((_, variant)) = RPC_TYPES.iter().find(|(name, _)| *name == given) {
        return Some(variant);
    }
    let names: Vec<_> = RPC_TYPES.iter().map(|(name, _)| format!("`\"{name}\"`")).collect();
    let hint = RPC_TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&given.replace(['_', '-'], "")));
    let hint = hint.map_or(String::new(), |(name, _)| format!(", perhaps `\"{name}\"`"));
    diag.at(
        literal,
        format_args!("unknown `rpc_type` `{given}`{hint}; expected one of {}", names.join(", ")),
    );
    None
}

/// `state = AppState`, bare or in quotes.
fn parse_type(key: &Key, tokens: &[TokenTree], diag: &mut Diagnostics) -> Option<Value> {
    let shown = TokenStream::from_iter(tokens.iter().cloned());
    let parsed = match tokens {
        [token] if literal(token).is_ok() => match literal(token) {
            Ok(Lit::Str(text)) => text.parse::<Type>().ok(),
            _ => None,
        },
        _ => syn::parse2::<Type>(shown.clone()).ok(),
    };
    if parsed.is_none() {
        diag.at(shown, format_args!("expected a type, as in `{}`", key.example));
    }
    parsed.map(|parsed| Value::Type(Box::new(parsed)))
}

/// `handler = find::<u64>` or `handler = Orders::find`, bare or in quotes.
fn parse_handler(key: &Key, tokens: &[TokenTree], diag: &mut Diagnostics) -> Option<Value> {
    let shown = TokenStream::from_iter(tokens.iter().cloned());
    let parsed = match tokens {
        [token] if literal(token).is_ok() => match literal(token) {
            Ok(Lit::Str(text)) => text.parse::<ExprPath>().ok(),
            _ => None,
        },
        _ => syn::parse2::<ExprPath>(shown.clone()).ok(),
    };
    let Some(parsed) = parsed else {
        diag.at(shown, format_args!("expected the path of a function, as in `{}`", key.example));
        return None;
    };
    if let Some(own) = find_ident(parsed.to_token_stream(), "Self") {
        diag.at(own, "`Self` is unknown where the router is made: write the type, as in `Orders::find`");
        return None;
    }
    Some(Value::Handler(Box::new(parsed)))
}

/// The first such word, however deep.
pub(crate) fn find_ident(tokens: TokenStream, word: &str) -> Option<Ident> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) => (ident == word).then_some(ident),
        TokenTree::Group(group) => find_ident(group.stream(), word),
        _ => None,
    })
}

/// `crate = soul`, `crate = ::soul`, `crate = crate::reexports::soul`, and each of them in quotes.
fn parse_crate(key: &Key, tokens: &[TokenTree], diag: &mut Diagnostics) -> Option<Value> {
    let shown = TokenStream::from_iter(tokens.iter().cloned());
    let parsed = match tokens {
        [token] if literal(token).is_ok() => match literal(token) {
            Ok(Lit::Str(text)) => text.parse_with(Path::parse_mod_style).ok(),
            _ => None,
        },
        _ => syn::parse::Parser::parse2(Path::parse_mod_style, shown.clone()).ok(),
    };
    if parsed.is_none() {
        diag.at(shown, format_args!("expected a path to the crate `soul-client`, as in `{}`", key.example));
    }
    parsed.map(Value::Crate)
}
