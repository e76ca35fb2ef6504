//! The attribute of `soul-client`; use it through that crate, whose documentation explains it.

mod args;
mod diag;
mod expand;
mod item;
mod keys;
mod owner;
mod signature;
mod value;

use proc_macro::TokenStream;

/// # Keys
///
#[doc = crate::keys::key_docs!()]
#[proc_macro_attribute]
pub fn soul_client(args: TokenStream, item: TokenStream) -> TokenStream {
    let at = proc_macro::Span::call_site();
    expand::expand(args.into(), item.into(), (at.line(), at.column())).into()
}

/// Takes the keys of [`macro@soul_client`].
#[proc_macro]
pub fn class(args: TokenStream) -> TokenStream {
    expand::expand_class(args.into()).into()
}
