//! What both programs say.

use soul_client::route::Collected;

/// `class path` of every route, sorted.
pub fn lines(collected: &Collected) -> Vec<String> {
    let inside = collected.classes.iter().flat_map(|class| {
        class.routes.iter().map(|route| format!("{} {}", class.class.annotation.path, route.annotation.path))
    });
    let outside = collected.routes.iter().map(|route| format!("- {}", route.annotation.path));
    let mut lines: Vec<_> = inside.chain(outside).collect();
    lines.sort();
    lines
}

/// Ends the program unless both are equal.
pub fn expect(what: &str, found: &[String], expected: &[&str]) {
    if found != expected {
        eprintln!("{what}: found {found:?}, expected {expected:?}");
        std::process::exit(1);
    }
}
