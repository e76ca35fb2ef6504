//! Item and arguments to tokens: the original item first, as it came, then what is submitted.
//!
//! What is submitted names everything by absolute paths through `soul_client::__private`, so that the
//! user needs no dependency of their own and no name of theirs can come between.

use std::hash::{DefaultHasher, Hash, Hasher};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::LitStr;
use syn::ext::IdentExt;

use crate::args::{self, Args};
use crate::diag::Diagnostics;
use crate::item::{self, Kind};
use crate::value::Value;

/// Expands the attribute. `place` is its line and column, which tell two attributes of one handler apart.
pub(crate) fn expand(args: TokenStream, item: TokenStream, place: (usize, usize)) -> TokenStream {
    let mut diag = Diagnostics::default();
    let seed = (args.to_string(), place);
    let args = args::parse(args, "#[soul_client(path = \"/order/save\")]", &mut diag);
    let head = item::read(&item, &mut diag);
    let submission = match (head, args.path()) {
        (Some(head), Some(path)) if diag.is_empty() => {
            let annotation = annotation(&args, path);
            let cfgs = &head.cfgs;
            let submission = match head.kind {
                Kind::Function => submit_route(&args, &annotation, &head.ident, &seed),
                Kind::Module if args.mounted_at().is_some() => {
                    let span = args.mounted_at().unwrap_or_else(Span::call_site);
                    diag.at_span(
                        span,
                        "a module is not mounted, but the functions in it can be: move this to them",
                    );
                    diag.into_tokens()
                }
                Kind::Module => {
                    let module = head.ident.to_string();
                    let module = quote!(::core::concat!(::core::module_path!(), "::", #module));
                    submit_class(&args.krate(), &annotation, &module)
                }
            };
            quote!(#(#cfgs)* #submission)
        }
        _ => diag.into_tokens(),
    };
    quote!(#item #submission)
}

/// Expands `class! { path = "…" }`, the annotation of the module in which it stands.
///
/// An attribute cannot stand on the module of a file; this stands in it instead.
pub(crate) fn expand_class(args: TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let args = args::parse(args, "class! { path = \"/order\" }", &mut diag);
    match args.path() {
        Some(path) if diag.is_empty() => {
            submit_class(&args.krate(), &annotation(&args, path), &quote!(::core::module_path!()))
        }
        _ => diag.into_tokens(),
    }
}

/// `Annotation::new("/save")` followed by a setter for each further key.
fn annotation(args: &Args, path: &LitStr) -> TokenStream {
    let krate = args.krate();
    let setters = args.given().filter_map(|(name, value)| {
        let value = match value {
            Value::Path(_) | Value::Crate(_) | Value::Type(_) => return None,
            Value::Text(text) => quote!(#text),
            Value::Flag(flag) => quote!(#flag),
            Value::RpcType(variant) => {
                let variant = Ident::new(variant, Span::call_site());
                quote!(#krate::__private::RpcType::#variant)
            }
        };
        let setter = Ident::new(name, Span::call_site());
        Some(quote!(.#setter(#value)))
    });
    quote!(#krate::__private::Annotation::new(#path) #(#setters)*)
}

/// A constant with a name stands in modules, functions and impl blocks alike; `const _` would not in
/// the last. The name begins with `_`, so that it is never reported as dead, and it is what the
/// compiler prints when the attribute stands in a trait or its implementation, where no such constant
/// may be.
fn submit_route(args: &Args, annotation: &TokenStream, handler: &Ident, seed: &impl Hash) -> TokenStream {
    let krate = args.krate();
    let mount = mount(args, handler);
    let handler = handler.unraw().to_string();
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let name = format_ident!(
        "_SOUL_CLIENT_CANNOT_STAND_IN_A_TRAIT_{}_{:X}",
        handler.to_uppercase(),
        hasher.finish() >> 32
    );
    quote! {
        #[doc(hidden)]
        const #name: () = {
            #krate::__private::inventory::submit! {
                #krate::__private::Route::new(#annotation).handler(#handler).module(::core::module_path!())
                    #mount
            }
        };
    }
}

/// `.mount(…)`, for a handler that is to be mounted. The types of axum are reached through `soul-client`, whose feature
/// `axum` is needed for it.
fn mount(args: &Args, handler: &Ident) -> Option<TokenStream> {
    let krate = args.krate();
    let state = args.state().map_or_else(|| quote!(()), ToTokens::to_token_stream);
    let methods: Vec<_> =
        args.methods().map(|name| Ident::new(name_or_any(name), Span::call_site())).collect();
    let words = args.methods().map(name_or_any);
    let (first, others) = methods.split_first()?;
    let filter = quote!(#krate::__private::mount::MethodFilter);
    let router = if methods.iter().any(|method| method == "any") {
        quote!(#krate::__private::mount::any(#handler))
    } else {
        quote!(#krate::__private::mount::on(#filter::#first #(.or(#filter::#others))*, #handler))
    };
    Some(quote! {
        .mount(#krate::__private::mount::of(
            &[#(#words),*],
            || #krate::__private::mount::erase::<#state>(#router),
        ))
    })
}

fn name_or_any(name: &'static str) -> &'static str {
    if name.is_empty() { "any" } else { name }
}

/// Stands beside an annotated module and not in it: what is in the module stays exactly as written.
fn submit_class(krate: &TokenStream, annotation: &TokenStream, module: &TokenStream) -> TokenStream {
    quote! {
        const _: () = {
            #krate::__private::inventory::submit! {
                #krate::__private::Class::new(#module, #annotation)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> TokenStream {
        source.parse().unwrap()
    }

    /// Tokens print with spacing of their own.
    fn squeezed(text: &str) -> String {
        text.split_whitespace().collect()
    }

    fn expanded(args: &str, item: &str) -> String {
        squeezed(&expand(tokens(args), tokens(item), (12, 5)).to_string())
    }

    #[test]
    fn function_is_followed_by_its_route() {
        let item = "#[doc = \"Saves.\"] #[cfg(unix)] pub async fn save<T>(order: T) -> impl Sized { order }";
        let args =
            r#"path = "/save", rpc_type = "springCloud", enabled = false, desc = "Save", rule_name = "s""#;
        let out = expanded(args, item);
        let submission = out.strip_prefix(&squeezed(item)).expect("the item comes first and unchanged");
        let (head, body) = submission.split_once(":()=").expect("a constant");
        let name =
            head.strip_prefix("#[cfg(unix)]#[doc(hidden)]const").expect("present whenever the item is");
        assert!(name.starts_with("_SOUL_CLIENT_CANNOT_STAND_IN_A_TRAIT_SAVE_"), "{name}");
        let expected = r#"{
            ::soul_client::__private::inventory::submit! {
                ::soul_client::__private::Route::new(
                    ::soul_client::__private::Annotation::new("/save")
                        .rpc_type(::soul_client::__private::RpcType::SpringCloud)
                        .enabled(false)
                        .desc("Save")
                        .rule_name("s")
                ).handler("save").module(::core::module_path!())
            }
        };"#;
        assert_eq!(body, squeezed(expected));
    }

    #[test]
    fn module_is_followed_by_its_class() {
        let item = "#[cfg(unix)] mod orders { fn save() {} }";
        let expected = r#"#[cfg(unix)] const _: () = {
            soul::__private::inventory::submit! {
                soul::__private::Class::new(
                    ::core::concat!(::core::module_path!(), "::", "orders"),
                    soul::__private::Annotation::new("/order")
                )
            }
        };"#;
        let out = expanded(r#"crate = soul, path = "/order""#, item);
        assert_eq!(out, squeezed(item) + &squeezed(expected));
    }

    #[test]
    fn class_macro_names_the_module_around_it() {
        let out = squeezed(&expand_class(tokens(r#"path = "/order""#)).to_string());
        assert!(out.contains("Class::new(::core::module_path!(),"), "{out}");
        let out = expand_class(TokenStream::new()).to_string();
        assert!(out.contains("write `class! { path ="), "{out}");
    }

    #[test]
    fn two_attributes_of_one_handler_have_two_names() {
        let name = |args: &str, place| {
            let out = expand(tokens(args), tokens("fn save() {}"), place).to_string();
            out.split_whitespace().find(|word| word.starts_with("_SOUL_CLIENT")).unwrap().to_owned()
        };
        let first = name("path = \"/a\"", (1, 1));
        assert_ne!(first, name("path = \"/a\"", (2, 1)));
        assert_ne!(first, name("path = \"/b\"", (1, 1)));
        assert_eq!(first, name("path = \"/a\"", (1, 1)));
    }

    #[test]
    fn item_stays_when_everything_is_wrong() {
        let item = "struct Order { id: u64 }";
        let out = expanded("pth = \"/a\", enabled = 1, desc = 2", item);
        let errors = out.strip_prefix(&squeezed(item)).expect("the item comes first and unchanged");
        assert_eq!(errors.matches("compile_error!").count(), 4, "{errors}");
        assert!(!errors.contains("submit"), "{errors}");
    }
}
