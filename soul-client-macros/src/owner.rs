//! Annotated impl blocks: the functions in them learn which type they stand in.
//!
//! A function of an impl block cannot be named without its type, and an attribute on the function does not see the
//! type. The attribute on the block does: it writes `impl = TYPE` into the annotations of the functions below it,
//! before these are expanded.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{GenericParam, ItemImpl, Type};

use crate::diag::Diagnostics;

/// The type of an impl block.
pub(crate) struct Owner {
    pub(crate) ty: Type,
    /// Its name without path and parameters.
    pub(crate) name: String,
}

/// Reads what stands before the body of `impl TYPE { … }`; `None` after a mistake was reported. The body is not looked
/// at, so that half-written code in it is the compiler's to explain.
pub(crate) fn read(tokens: &[TokenTree], diag: &mut Diagnostics) -> Option<Owner> {
    let head = tokens.split_last().map_or(tokens, |(_, head)| head).iter().cloned();
    let body = TokenTree::from(Group::new(Delimiter::Brace, TokenStream::new()));
    let block = match syn::parse2::<ItemImpl>(head.chain([body]).collect()) {
        Ok(block) => block,
        Err(error) => {
            diag.at_span(error.span(), format_args!("{error}; expected `impl TYPE {{ … }}`"));
            return None;
        }
    };
    if let Some((path, _)) = &block.trait_ {
        diag.at(
            path,
            "the implementation of a trait cannot be annotated: write handlers as functions of the type itself",
        );
        return None;
    }
    let name = match &*block.self_ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    };
    let Some(name) = name else {
        diag.at(&block.self_ty, "expected a type that has a name, as in `impl Orders { … }`");
        return None;
    };
    let open = block.generics.params.iter().find(|param| !matches!(param, GenericParam::Lifetime(_)));
    if let Some(param) = open {
        diag.at(
            param,
            format_args!(
                "an impl block that is generic cannot be annotated, since it stands for many types: annotate the \
                 functions in it, and say which one is mounted, as in `handler = {name}::<u64>::find`"
            ),
        );
        return None;
    }
    Some(Owner { ty: *block.self_ty, name: name.trim_start_matches("r#").to_owned() })
}

/// The block with `impl = TYPE` in the annotations of its functions.
pub(crate) fn tell(item: TokenStream, owner: &Type) -> TokenStream {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    if let Some(TokenTree::Group(body)) = tokens.last_mut() {
        let told = body.stream().into_iter().map(|token| match token {
            // Of all brackets only those of attributes hold a `soul_client(…)` that means us.
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                with_stream(&group, in_attribute(group.stream(), owner)).into()
            }
            token => token,
        });
        *body = with_stream(body, told.collect());
    }
    tokens.into_iter().collect()
}

/// `soul_client(…)`, with or without a path before it, also inside `cfg_attr(…)`.
fn in_attribute(tokens: TokenStream, owner: &Type) -> TokenStream {
    let mut before = String::new();
    let told = tokens.into_iter().map(|token| {
        let word = std::mem::replace(&mut before, token.to_string());
        match (token, word.as_str()) {
            (TokenTree::Group(group), "soul_client") => {
                let (given, owner) = (group.stream(), owner.to_token_stream());
                with_stream(&group, quote!(#given, impl = #owner)).into()
            }
            (TokenTree::Group(group), "cfg_attr") => {
                with_stream(&group, in_attribute(group.stream(), owner)).into()
            }
            (token, _) => token,
        }
    });
    told.collect()
}

/// The same group around other tokens.
fn with_stream(group: &Group, stream: TokenStream) -> Group {
    let mut other = Group::new(group.delimiter(), stream);
    other.set_span(group.span());
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_str(source: &str) -> Result<(String, String), Vec<String>> {
        let mut diag = Diagnostics::default();
        let tokens: Vec<_> = source.parse::<TokenStream>().unwrap().into_iter().collect();
        match read(&tokens, &mut diag) {
            Some(owner) => Ok((owner.ty.to_token_stream().to_string(), owner.name)),
            None => Err(diag.messages()),
        }
    }

    #[test]
    fn types_with_a_name_are_read() {
        for (source, ty, name) in [
            ("impl Orders { fn half( }", "Orders", "Orders"),
            ("impl<'a> api::Orders<'a> {}", "api :: Orders < 'a >", "Orders"),
            ("impl Orders<u8> {}", "Orders < u8 >", "Orders"),
            ("impl r#type {}", "r#type", "type"),
        ] {
            // What does not even pair its brackets is none of an attribute's business.
            let source = source.replace("fn half( ", "fn half() -> ");
            assert_eq!(read_str(&source), Ok((ty.to_owned(), name.to_owned())), "{source}");
        }
        for (source, expected) in [
            ("impl Send for Orders {}", "the implementation of a trait"),
            ("impl<T> Orders<T> {}", "an impl block that is generic"),
            ("impl<'a, const N: usize> Orders<'a, N> {}", "an impl block that is generic"),
            ("impl [Orders] {}", "expected a type that has a name"),
            ("impl = {}", "expected"),
        ] {
            let messages = read_str(source).unwrap_err();
            assert!(messages.len() == 1 && messages[0].starts_with(expected), "{source}: {messages:?}");
        }
    }

    #[test]
    fn annotations_of_the_functions_are_told_and_nothing_else() {
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        let told = |source: &str| {
            squeezed(&tell(source.parse().unwrap(), &syn::parse_str("Orders").unwrap()).to_string())
        };
        for (source, expected) in [
            (
                "#[soul_client(path = \"/a\")] fn a() {}",
                "#[soul_client(path = \"/a\", impl = Orders)] fn a() {}",
            ),
            (
                "#[soul_client::soul_client(get,)] fn a() {}",
                "#[soul_client::soul_client(get,, impl = Orders)] fn a() {}",
            ),
            (
                "#[cfg_attr(unix, soul_client(get))] fn a() {}",
                "#[cfg_attr(unix, soul_client(get, impl = Orders))] fn a() {}",
            ),
            ("#[other(soul_client(get))] fn a() {}", "#[other(soul_client(get))] fn a() {}"),
            ("fn a() { [soul_client(1)]; }", "fn a() { [soul_client(1)]; }"),
        ] {
            let block = |body: &str| squeezed(&format!("impl Orders {{ {body} }}"));
            assert_eq!(told(&format!("impl Orders {{ {source} }}")), block(expected));
        }
    }
}
