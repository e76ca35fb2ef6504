//! Collects mistakes and speaks once, so that a user repairs all of them in one go.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The mistakes found so far, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Diagnostics {
    errors: Vec<syn::Error>,
}

impl Diagnostics {
    /// Reports a mistake at `tokens`, underlining all of them.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.errors.push(syn::Error::new_spanned(tokens, message));
    }

    /// Reports a mistake at one place, for example at the attribute itself.
    pub(crate) fn at_span(&mut self, span: Span, message: impl Display) {
        self.errors.push(syn::Error::new(span, message));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// One `compile_error!` for each mistake; they stand wherever items do, impl blocks included.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.errors.iter().map(syn::Error::to_compile_error).collect()
    }

    #[cfg(test)]
    pub(crate) fn messages(&self) -> Vec<String> {
        self.errors.iter().map(ToString::to_string).collect()
    }
}
