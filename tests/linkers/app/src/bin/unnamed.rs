//! Has the same dependency and never names it: nothing is collected, the hint says why, and the routes can be given by
//! hand.

use soul_client::route::{Annotation, Class, Collected, EMPTY_HINT, Route, collected};

fn main() {
    let found = collected();
    app::expect("collected", &app::lines(&found), &[]);
    if !found.is_empty() || !EMPTY_HINT.contains("use that_crate as _;") {
        eprintln!("the hint is `{EMPTY_HINT}`");
        std::process::exit(1);
    }
    let by_hand = Collected::group(
        [Class::new("orders::order", Annotation::new("/order"))],
        [
            Route::new(Annotation::new("/order/list")).module("orders"),
            Route::new(Annotation::new("/save")).module("orders::order"),
        ],
    );
    app::expect("by hand", &app::lines(&by_hand), &["- /order/list", "/order /save"]);
}
