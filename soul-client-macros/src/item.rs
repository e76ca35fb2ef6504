//! Looks at the annotated item just far enough to know its kind and its name.
//!
//! The item is not parsed in full: its tokens go out as they came in, and half-written code in an
//! editor must not make the attribute complain about things that the compiler says better.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Visibility};

use crate::diag::Diagnostics;

/// What may be annotated, for the end of messages.
const ACCEPTED: &str = "`#[soul_client]` goes on a function with a body (one route), or on an inline module or impl block (a class of routes)";

/// An item that can carry the attribute.
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// The name; the word `impl` of an impl block.
    pub(crate) ident: Ident,
    /// The item without attributes and visibility.
    pub(crate) tokens: Vec<TokenTree>,
    /// `#[cfg(…)]` attributes that are still there; what is submitted must come and go with the item.
    pub(crate) cfgs: Vec<Attribute>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Module,
    Impl,
}

/// Reads the head of an item; `None` after a mistake was reported.
///
/// ```text
/// ATTR* VIS? (default | const | async | unsafe | safe | extern "abi"?)* fn NAME … { … }
/// ATTR* VIS? unsafe? mod NAME { … }
/// ATTR* unsafe? impl … { … }
/// ```
pub(crate) fn read(tokens: &TokenStream, diag: &mut Diagnostics) -> Option<Item> {
    let head = |input: ParseStream<'_>| -> syn::Result<(Vec<Attribute>, Vec<TokenTree>)> {
        let attrs = input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        Ok((attrs, input.parse::<TokenStream>()?.into_iter().collect()))
    };
    let (attrs, rest) = match head.parse2(tokens.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            diag.at_span(error.span(), format_args!("{error}; {ACCEPTED}"));
            return None;
        }
    };
    let cfgs = attrs.into_iter().filter(|attr| attr.path().is_ident("cfg")).collect();
    let (kind, ident) = kind_and_name(&rest, diag)?;
    Some(Item { kind, ident, tokens: rest, cfgs })
}

fn kind_and_name(tokens: &[TokenTree], diag: &mut Diagnostics) -> Option<(Kind, Ident)> {
    let keyword = tokens.iter().position(|token| !is_qualifier(token)).unwrap_or(0);
    let kind = match tokens.get(keyword) {
        Some(TokenTree::Ident(word)) if word == "fn" => Kind::Function,
        Some(TokenTree::Ident(word)) if word == "mod" => Kind::Module,
        Some(TokenTree::Ident(word)) if word == "impl" => return Some((Kind::Impl, word.clone())),
        _ => {
            refuse_other(tokens, diag);
            return None;
        }
    };
    let Some(TokenTree::Ident(ident)) = tokens.get(keyword + 1) else {
        diag.at(&tokens[keyword], format_args!("expected a name after this; {ACCEPTED}"));
        return None;
    };
    let body =
        matches!(tokens.last(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace);
    match (body, kind) {
        (true, _) | (false, Kind::Impl) => Some((kind, ident.clone())),
        (false, Kind::Function) => {
            diag.at(ident, format_args!("`{ident}` has no body, so it handles no request; {ACCEPTED}"));
            None
        }
        (false, Kind::Module) => {
            let name = ident.unraw();
            diag.at(
                ident,
                format_args!(
                    "the module must be inline, `mod {name} {{ … }}`: an attribute does not reach into another \
                     file; write `soul_client::class! {{ path = \"…\" }}` in that file, or the full path at \
                     each handler in it"
                ),
            );
            None
        }
    }
}

/// Whether `token` may stand before `fn` or `mod`; a literal is the name of an ABI.
fn is_qualifier(token: &TokenTree) -> bool {
    const QUALIFIERS: &[&str] = &["default", "const", "async", "unsafe", "safe", "extern"];
    match token {
        TokenTree::Ident(word) => QUALIFIERS.iter().any(|qualifier| word == qualifier),
        TokenTree::Literal(_) => true,
        _ => false,
    }
}

fn refuse_other(tokens: &[TokenTree], diag: &mut Diagnostics) {
    const ITEMS: &[&str] = &[
        "struct",
        "enum",
        "union",
        "trait",
        "type",
        "const",
        "static",
        "use",
        "extern",
        "macro_rules",
        "let",
    ];
    let found = tokens.iter().take(3).find_map(|token| match token {
        TokenTree::Ident(word) if ITEMS.iter().any(|item| word == item) => Some(word),
        _ => None,
    });
    match (found, tokens.first()) {
        (Some(word), _) => diag.at(word, format_args!("this `{word}` cannot be annotated; {ACCEPTED}")),
        (None, Some(first)) => diag.at(first, format_args!("this cannot be annotated; {ACCEPTED}")),
        (None, None) => {
            diag.at_span(proc_macro2::Span::call_site(), format_args!("nothing to annotate; {ACCEPTED}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_str(source: &str) -> Result<(Kind, String, usize), Vec<String>> {
        let mut diag = Diagnostics::default();
        let item = read(&source.parse().unwrap(), &mut diag);
        match item {
            Some(item) if diag.is_empty() => Ok((item.kind, item.ident.to_string(), item.cfgs.len())),
            _ => Err(diag.messages()),
        }
    }

    #[test]
    fn functions_and_blocks_are_read() {
        let cases = [
            ("fn a() {}", Kind::Function, "a", 0),
            (
                "pub(crate) async fn b<T: Into<String>>(x: T) -> impl Sized where T: Clone { x }",
                Kind::Function,
                "b",
                0,
            ),
            ("pub const unsafe extern \"C\" fn c(&self) {}", Kind::Function, "c", 0),
            ("default async fn d(self: &Self) {}", Kind::Function, "d", 0),
            ("#[doc = \"x\"] #[cfg(unix)] #[cfg(test)] fn e() {}", Kind::Function, "e", 2),
            ("fn r#type() {}", Kind::Function, "r#type", 0),
            ("fn half() { let x = ; }", Kind::Function, "half", 0),
            ("pub mod orders { fn inner() {} }", Kind::Module, "orders", 0),
            ("#[cfg(unix)] mod r#mod {}", Kind::Module, "r#mod", 1),
            ("#[cfg(unix)] impl Orders { fn find() {} }", Kind::Impl, "impl", 1),
        ];
        for (source, kind, name, cfgs) in cases {
            assert_eq!(read_str(source), Ok((kind, name.to_string(), cfgs)), "{source}");
        }
    }

    #[test]
    fn other_items_are_refused_with_what_is_accepted() {
        let cases = [
            ("struct Order;", "this `struct` cannot be annotated"),
            ("pub const PATH: &str = \"/x\";", "this `const` cannot be annotated"),
            ("use a::b;", "this `use` cannot be annotated"),
            ("let handler = |x| x;", "this `let` cannot be annotated"),
            ("macro_rules! m { () => {} }", "this `macro_rules` cannot be annotated"),
            ("println! { \"x\" }", "this cannot be annotated"),
            ("", "nothing to annotate"),
            ("fn declared(&self);", "`declared` has no body"),
            ("mod orders;", "the module must be inline, `mod orders { … }`"),
        ];
        for (source, expected) in cases {
            let messages = read_str(source).unwrap_err();
            assert_eq!(messages.len(), 1, "{source}: {messages:?}");
            assert!(messages[0].starts_with(expected), "{source}: {messages:?}");
        }
    }
}
