//! Handlers written by a macro: captured literals, several attributes from one repetition, `$crate`.

pub(crate) const ROUTES: &[(&str, &str)] =
    &[("/macro/a", "first"), ("/macro/b", "second"), ("/macro/c", "second"), ("/macro/d", "method")];

pub(crate) mod deps {
    pub(crate) use soul_client as soul;
}

macro_rules! handlers {
    ($($name:ident: $($path:literal)*;)*) => {
        $(
            $(#[$crate::pass::by_macro_rules::deps::soul::soul_client(
                path = $path,
                crate = $crate::pass::by_macro_rules::deps::soul
            )])*
            pub(crate) fn $name() {}
        )*
    };
}

handlers! {
    first: "/macro/a";
    second: "/macro/b" "/macro/c";
}

pub(crate) struct Orders;

impl Orders {
    handlers! {
        method: "/macro/d";
    }
}

#[test]
fn functions_are_callable() {
    first();
    second();
    Orders::method();
}
