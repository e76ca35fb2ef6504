//! What `#[cfg]` takes away is not registered, wherever it stands.

use soul_client::soul_client;

pub(crate) const ROUTES: &[(&str, &str)] =
    &[("/on/above", "above"), ("/on/below", "below"), ("/on/inner", "inner")];

#[cfg(test)]
#[soul_client(path = "/on/above")]
pub(crate) fn above() {}

#[cfg(not(test))]
#[soul_client(path = "/off/above")]
pub(crate) fn above() {}

#[soul_client(path = "/on/below")]
#[cfg(test)]
pub(crate) fn below() {}

#[soul_client(path = "/off/below")]
#[cfg(not(test))]
pub(crate) fn below() {}

#[soul_client(path = "/off/by-attr")]
#[cfg_attr(test, cfg(not(test)))]
pub(crate) fn by_attr() {}

#[cfg_attr(not(test), soul_client(path = "/off/attribute"))]
pub(crate) fn unannotated() {}

#[soul_client(path = "/off/class")]
#[cfg(not(test))]
pub(crate) mod off {
    #[soul_client::soul_client(path = "/off/in-module")]
    pub(crate) fn in_module() {}
}

#[cfg(test)]
pub(crate) mod on {
    pub(crate) struct Orders;

    impl Orders {
        #[soul_client::soul_client(path = "/on/inner")]
        #[cfg(test)]
        pub(crate) fn inner() {}

        #[soul_client::soul_client(path = "/off/inner")]
        #[cfg(not(test))]
        pub(crate) fn inner() {}
    }
}

#[test]
fn the_right_functions_remain() {
    above();
    below();
    unannotated();
    on::Orders::inner();
}
