//! Item and arguments to tokens: the original item first, as it came, then what is submitted.
//!
//! What is submitted names everything by absolute paths through `soul_client::__private`, so that the
//! user needs no dependency of their own and no name of theirs can come between.

use std::hash::{DefaultHasher, Hash, Hasher};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{LitStr, Type};

use crate::args::{self, Args};
use crate::diag::Diagnostics;
use crate::item::{self, Kind};
use crate::value::Value;
use crate::{owner, signature};

/// Expands the attribute. `place` is its line and column, which tell two attributes of one handler apart.
pub(crate) fn expand(args: TokenStream, item: TokenStream, place: (usize, usize)) -> TokenStream {
    let mut diag = Diagnostics::default();
    let seed = (args.to_string(), place);
    let args = args::parse(args, &mut diag);
    let head = item::read(&item, &mut diag);
    // On an impl block a path is not needed: the annotation then only says whose functions these are.
    if head.as_ref().is_none_or(|head| head.kind != Kind::Impl) {
        args.require_path("#[soul_client(path = \"/order/save\")]", &mut diag);
    }
    let Some(head) = head else { return with(item, diag.into_tokens()) };
    let annotation = args.path().map(|path| annotation(&args, path));
    let submission = match (head.kind, annotation) {
        (Kind::Function, Some(annotation)) => {
            if args.mounted_at().is_some() {
                signature::check(&args, &head.ident, &head.tokens, &mut diag);
            }
            submit_route(&args, &annotation, &head.ident, &seed)
        }
        (Kind::Module, Some(annotation)) => {
            refuse_methods(&args, "a module", &mut diag);
            let module = head.ident.to_string();
            let module = quote!(::core::concat!(::core::module_path!(), "::", #module));
            submit_class(&args.krate(), &format_ident!("_"), &annotation, &module)
        }
        (Kind::Impl, annotation) => {
            refuse_methods(&args, "an impl block", &mut diag);
            let Some(owner) = owner::read(&head.tokens, &mut diag) else {
                return with(item, diag.into_tokens());
            };
            let class = annotation.map(|annotation| {
                let name = format_ident!(
                    "_SOUL_CLIENT_ONLY_ONE_IMPL_BLOCK_OF_{}_CAN_HAVE_A_PATH",
                    owner.name.to_uppercase()
                );
                submit_class(&args.krate(), &name, &annotation, &module_of(&owner.name))
            });
            if !diag.is_empty() {
                return with(item, diag.into_tokens());
            }
            let (cfgs, class) = (&head.cfgs, class.unwrap_or_default());
            // Without a class there is nothing that a `#[cfg]` could stand on.
            let class = if class.is_empty() { class } else { quote!(#(#cfgs)* #class) };
            return with(owner::tell(item, &owner.ty), class);
        }
        (_, None) => TokenStream::new(),
    };
    if !diag.is_empty() {
        return with(item, diag.into_tokens());
    }
    let cfgs = &head.cfgs;
    with(item, quote!(#(#cfgs)* #submission))
}

fn with(item: TokenStream, submission: TokenStream) -> TokenStream {
    quote!(#item #submission)
}

/// Only a handler can be mounted.
fn refuse_methods(args: &Args, what: &str, diag: &mut Diagnostics) {
    if let Some(span) = args.mounted_at() {
        diag.at_span(
            span,
            format_args!("{what} is not mounted, but the functions in it can be: move this to them"),
        );
    }
}

/// Expands `class! { path = "…" }`, the annotation of the module in which it stands.
///
/// An attribute cannot stand on the module of a file; this stands in it instead.
pub(crate) fn expand_class(args: TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let args = args::parse(args, &mut diag);
    args.require_path("class! { path = \"/order\" }", &mut diag);
    refuse_methods(&args, "a module", &mut diag);
    match args.path() {
        Some(path) if diag.is_empty() => {
            let (any, module) = (format_ident!("_"), quote!(::core::module_path!()));
            submit_class(&args.krate(), &any, &annotation(&args, path), &module)
        }
        _ => diag.into_tokens(),
    }
}

/// `Annotation::new("/save")` followed by a setter for each further key.
fn annotation(args: &Args, path: &LitStr) -> TokenStream {
    let krate = args.krate();
    let setters = args.given().filter_map(|(name, value)| {
        let value = match value {
            Value::Path(_) | Value::Crate(_) | Value::Type(_) | Value::Handler(_) => return None,
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
/// compiler prints where no such constant may be, or none that is reached by its plain name.
fn submit_route(args: &Args, annotation: &TokenStream, handler: &Ident, seed: &impl Hash) -> TokenStream {
    let krate = args.krate();
    let by_plain_name = args.mounted_at().is_some() && args.handler().is_none() && args.owner().is_none();
    let advice = if by_plain_name { "_NEEDS_ITS_IMPL_BLOCK_ANNOTATED_TOO_AND" } else { "" };
    let name = handler.unraw().to_string();
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let constant = format_ident!(
        "_SOUL_CLIENT{advice}_CANNOT_STAND_IN_A_TRAIT_{}_{:X}",
        name.to_uppercase(),
        hasher.finish() >> 32
    );
    let module = match args.owner() {
        Some(owner) => module_of(&type_name(owner)),
        None => quote!(::core::module_path!()),
    };
    // In an impl block a plain name means some other function, or none. That of the constant is then unknown as well,
    // and its words say what to do.
    let module = if by_plain_name { quote!({ let () = #constant; #module }) } else { module };
    let mount = mount(args, handler);
    quote! {
        #[doc(hidden)]
        const #constant: () = {
            #krate::__private::inventory::submit! {
                #krate::__private::Route::new(#annotation).handler(#name).module(#module)
                    #mount
            }
        };
    }
}

/// An annotated impl block is to its functions what a module of the type's name would be.
fn module_of(owner: &str) -> TokenStream {
    quote!(::core::concat!(::core::module_path!(), "::", #owner))
}

/// The name without path and parameters; [`owner::read`] has seen to it that there is one.
fn type_name(owner: &Type) -> String {
    match owner {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.unraw().to_string()),
        _ => None,
    }
    .unwrap_or_default()
}

/// `.mount(…)`, for a handler that is to be mounted. The types of axum are reached through a macro of `soul-client`,
/// which says so if its feature `axum` is off.
fn mount(args: &Args, handler: &Ident) -> Option<TokenStream> {
    let krate = args.krate();
    let state = args.state().map_or_else(|| quote!(()), ToTokens::to_token_stream);
    let methods: Vec<_> =
        args.methods().map(|name| Ident::new(name_or_any(name), Span::call_site())).collect();
    if methods.is_empty() {
        return None;
    }
    let handler = match (args.handler(), args.owner()) {
        (Some(instance), _) => instance.to_token_stream(),
        (None, Some(owner)) => quote!(<#owner>::#handler),
        (None, None) => handler.to_token_stream(),
    };
    let by = if methods.iter().any(|method| method == "any") { quote!(any) } else { quote!(on) };
    Some(quote!(.mount(#krate::__private::mount!(#by, [#(#methods)*], #state, #handler))))
}

fn name_or_any(name: &'static str) -> &'static str {
    if name.is_empty() { "any" } else { name }
}

/// Stands beside an annotated module and not in it: what is in the module stays exactly as written.
fn submit_class(
    krate: &TokenStream,
    constant: &Ident,
    annotation: &TokenStream,
    module: &TokenStream,
) -> TokenStream {
    quote! {
        const #constant: () = {
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
