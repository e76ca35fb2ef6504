//! Inline modules as classes: nested, wildcard, with a raw name, empty.

use soul_client::soul_client;

pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("/deep", "deep"),
    ("/free", "free"),
    ("/in-test", "payment"),
    ("/raw", "raw"),
    ("/refund", "refund"),
    ("/save", "save"),
];

#[soul_client(path = "/free")]
pub(crate) fn free() {}

#[soul_client(path = "/order", desc = "Orders")]
pub(crate) mod order {
    //! Inner documentation and attributes are kept.
    #![allow(clippy::module_inception)]

    use soul_client::soul_client;

    #[soul_client(path = "/save")]
    pub(crate) fn save() {}

    pub(crate) mod unannotated {
        #[soul_client::soul_client(path = "/deep")]
        pub(crate) fn deep() {}
    }

    #[soul_client(path = "/refunds")]
    pub(crate) mod refund {
        #[soul_client::soul_client(path = "/refund")]
        pub(crate) fn refund() {}
    }
}

#[soul_client(path = "/test/**", rule_name = "all of test", enabled = false)]
pub(crate) mod test {
    #[soul_client::soul_client(path = "/in-test")]
    pub(crate) fn payment() {}
}

#[soul_client(path = "/raw")]
pub(crate) mod r#type {
    #[soul_client::soul_client(path = "/raw")]
    pub(crate) fn raw() {}
}

/// Written raw without need: the compiler calls it `empty`.
#[soul_client(path = "/empty")]
pub(crate) mod r#empty {}

#[test]
fn functions_in_classes_are_where_they_were() {
    free();
    order::save();
    order::unannotated::deep();
    order::refund::refund();
    test::payment();
    r#type::raw();
}
