//! Whether a function can be mounted as it stands, by its name alone.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;

use crate::args::Args;
use crate::diag::Diagnostics;
use crate::value::find_ident;

/// Reports why a function that is to be mounted cannot be. `tokens` begin before its `fn`.
pub(crate) fn check(args: &Args, name: &Ident, tokens: &[TokenTree], diag: &mut Diagnostics) {
    let signature = Signature::read(name, tokens);
    if let Some(receiver) = signature.receiver() {
        diag.at(
            receiver,
            format_args!(
                "`{name}` cannot be mounted: a router has no `self` to call it with; take what it needs as \
                 `State(…)`, from a function without `self`"
            ),
        );
        return;
    }
    if args.handler().is_some() {
        return;
    }
    let owner = args.owner().map_or_else(String::new, |owner| format!("{}::", spaceless(owner)));
    if let Some(open) = find_ident(signature.arguments.clone(), "impl") {
        diag.at(
            open,
            format_args!(
                "`{name}` cannot be mounted: the type of an `impl` argument cannot be said; make it a type \
                 parameter, and write `handler = {owner}{name}::<…>`"
            ),
        );
    } else if let Some(parameter) = signature.parameter() {
        diag.at(
            parameter,
            format_args!(
                "`{name}` is generic: say which instance is mounted, as in `handler = {owner}{name}::<u64>`"
            ),
        );
    } else if let (None, Some(own)) = (args.owner(), find_ident(signature.all(), "Self")) {
        diag.at(
            own,
            format_args!(
                "`{name}` stands in an impl block: annotate that with `#[soul_client]` as well, or write \
                 `handler = Orders::{name}` with the type's name"
            ),
        );
    }
}

fn spaceless(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

/// The parts of `NAME <GENERICS> (ARGUMENTS) REST`.
#[derive(Default)]
struct Signature {
    generics: Vec<TokenTree>,
    arguments: TokenStream,
    rest: TokenStream,
}

impl Signature {
    fn read(name: &Ident, tokens: &[TokenTree]) -> Self {
        let behind = tokens.iter().position(|token| matches!(token, TokenTree::Ident(word) if word == name));
        let tokens = &tokens[behind.map_or(tokens.len(), |at| at + 1)..];
        let is_list = |token: &TokenTree| matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::Parenthesis);
        // Brackets of a bound such as `F: Fn(u8)` stand between angle brackets.
        let mut depth = 0_usize;
        let mut before = ' ';
        let list = tokens.iter().position(|token| {
            let mark = if let TokenTree::Punct(punct) = token { punct.as_char() } else { ' ' };
            match mark {
                '<' => depth += 1,
                '>' if before != '-' => depth = depth.saturating_sub(1),
                _ => {}
            }
            before = mark;
            depth == 0 && is_list(token)
        });
        let Some(list) = list else { return Self::default() };
        let arguments = match &tokens[list] {
            TokenTree::Group(group) => group.stream(),
            _ => TokenStream::new(),
        };
        let rest = tokens[list + 1..].split_last().map_or(&[][..], |(_, rest)| rest);
        Self { generics: tokens[..list].to_vec(), arguments, rest: rest.iter().cloned().collect() }
    }

    fn all(&self) -> TokenStream {
        self.generics.iter().cloned().chain(self.arguments.clone()).chain(self.rest.clone()).collect()
    }

    /// `self`, as in `&mut self` and `self: Arc<Self>`.
    fn receiver(&self) -> Option<TokenTree> {
        let first = self.arguments.clone().into_iter();
        let mut first = first
            .take_while(|token| !matches!(token, TokenTree::Punct(p) if [',', ':'].contains(&p.as_char())));
        first.find(|token| matches!(token, TokenTree::Ident(word) if word == "self"))
    }

    /// The first parameter that is a type or a constant.
    fn parameter(&self) -> Option<TokenTree> {
        let (mut depth, mut begins) = (0_usize, false);
        for token in &self.generics {
            match token {
                TokenTree::Punct(punct) => {
                    match punct.as_char() {
                        '<' => depth += 1,
                        '>' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    let opens = punct.as_char() == '<' || punct.as_char() == ',';
                    begins = opens && depth == 1;
                }
                TokenTree::Ident(_) if begins => return Some(token.clone()),
                _ => begins = false,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    fn messages(arguments: &str, function: &str) -> Vec<String> {
        let mut diag = Diagnostics::default();
        let args = args::parse(arguments.parse().unwrap(), &mut diag);
        let tokens: Vec<_> = function.parse::<TokenStream>().unwrap().into_iter().collect();
        check(&args, &quote::format_ident!("find"), &tokens, &mut diag);
        diag.messages()
    }

    #[test]
    fn what_has_a_name_of_its_own_can_be_mounted() {
        for function in [
            "async fn find() -> impl IntoResponse { self.x }",
            "fn find(Path(id): Path<u64>, State(s): State<Arc<dyn Fn(u8) -> u8>>) -> Json<Vec<u8>> {}",
            "fn find<'a>(x: &'a str) -> &'a str where 'a: 'a { x }",
        ] {
            assert_eq!(messages("get", function), [""; 0], "{function}");
        }
        for (arguments, function) in [
            ("get, handler = find::<u8>", "fn find<T: Into<u8>>(x: T) {}"),
            ("get, handler = Orders::<u8>::find", "fn find(x: Self) {}"),
            ("get, impl = Orders", "fn find(x: Json<Self>) -> Json<Self> {}"),
        ] {
            assert_eq!(messages(arguments, function), [""; 0], "{function}");
        }
    }

    #[test]
    fn what_has_none_is_explained() {
        for (arguments, function, expected) in [
            ("get", "fn find(&self) {}", "`find` cannot be mounted: a router has no `self`"),
            ("get", "fn find(&'a mut self, x: u8) {}", "`find` cannot be mounted: a router has no `self`"),
            (
                "get, handler = A::find",
                "fn find(self: Arc<Self>) {}",
                "`find` cannot be mounted: a router has no",
            ),
            (
                "get",
                "fn find<T>(x: T) {}",
                "`find` is generic: say which instance is mounted, as in `handler = find::<u64>`",
            ),
            ("get", "fn find<'a, F: Fn(u8) -> u8>(x: F) {}", "`find` is generic"),
            ("get", "fn find<const N: usize>() {}", "`find` is generic"),
            (
                "get, impl = Orders<u8>",
                "fn find<T>(x: T) {}",
                "`find` is generic: say which instance is mounted, as in `handler = Orders<u8>::find::<u64>`",
            ),
            ("get", "fn find(x: impl Sized) {}", "`find` cannot be mounted: the type of an `impl` argument"),
            ("get", "fn find() -> Result<Self, u8> {}", "`find` stands in an impl block"),
        ] {
            let messages = messages(arguments, function);
            assert!(messages.len() == 1 && messages[0].starts_with(expected), "{function}: {messages:?}");
        }
    }
}
