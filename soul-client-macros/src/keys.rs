//! The one table of keys: parsing, the "expected one of …" message and the documentation come from it.

/// What a key's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A string that is a path of a route.
    Path,
    /// Any string.
    Text,
    /// A string out of [`RPC_TYPES`].
    RpcType,
    /// `true` or `false`.
    Flag,
    /// A type, bare or in quotes.
    Type,
    /// A path to a function, bare or in quotes.
    Handler,
    /// A path to the crate `soul-client`, bare or in quotes.
    Crate,
}

/// One key of the attribute. Every key but `path`, `state`, `handler` and `crate` is also the name of a setter of
/// `soul_client::route::Annotation`.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// How to write it, for messages and the documentation.
    pub(crate) example: &'static str,
    /// Words that mean this key elsewhere, so that the message can suggest it.
    pub(crate) also: &'static [&'static str],
}

/// Words that stand alone and mount the handler, and what they are in `axum::routing::MethodFilter`. `any` is all.
pub(crate) const METHODS: &[(&str, &str)] = &[
    ("get", "GET"),
    ("post", "POST"),
    ("put", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
    ("head", "HEAD"),
    ("options", "OPTIONS"),
    ("trace", "TRACE"),
    ("any", ""),
];

/// Names of `RpcType` on the wire, and of the variants in `soul_client::route`.
pub(crate) const RPC_TYPES: &[(&str, &str)] = &[("http", "Http"), ("springCloud", "SpringCloud")];

/// Makes [`KEYS`] and, for the documentation, `key_docs!` of the same lines.
macro_rules! keys {
    ($($name:literal, $form:ident, $example:literal, $default:literal, [$($also:literal),*], $doc:literal;)*) => {
        pub(crate) const KEYS: &[Key] =
            &[$(Key { name: $name, form: Form::$form, example: $example, also: &[$($also),*] }),*];

        macro_rules! key_docs {
            () => {
                concat!(
                    "| key | default | meaning |\n|---|---|---|\n",
                    $("| `", $example, "` | ", $default, " | ", $doc, " |\n",)*
                    "| `get`, `post`, `put`, `patch`, `delete`, `head`, `options`, `trace`, `any` | none | mounts the \
                     handler in `soul_client::router()`, for these methods |\n"
                )
            };
        }
        pub(crate) use key_docs;
    };
}

keys! {
    "path", Path, "path = \"/order/save\"", "none, must be given", ["value", "url", "uri", "route"],
        "path below the context path and below the path of the class; starts with `/`, is registered as written";
    "rule_name", Text, "rule_name = \"save order\"", "the full path", ["name"],
        "name of the rule in the admin";
    "desc", Text, "desc = \"Save order\"", "empty", ["description", "doc"],
        "description shown by the admin";
    "rpc_type", RpcType, "rpc_type = \"http\"", "what the client is", ["type", "rpc"],
        "how the gateway calls the route: `\"http\"` or `\"springCloud\"`";
    "enabled", Flag, "enabled = true", "`true`", ["enable"],
        "whether the metadata is enabled; an admin makes the rule enabled in any case";
    "register_meta_data", Flag, "register_meta_data = true", "`false`", ["metadata"],
        "whether metadata is registered beside the rule";
    "state", Type, "state = AppState", "`()`", [],
        "with `get` and its like: the state that the handler takes";
    "handler", Handler, "handler = find::<u64>", "the function below", ["instance", "function"],
        "with `get` and its like: what is mounted, for a generic function or one in an impl block";
    "crate", Crate, "crate = soul_client", "`::soul_client`", ["krate"],
        "path to the crate `soul-client`, for a program that renames or re-exports it";
}

pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The key that a mistyped `name` most likely stands for.
pub(crate) fn nearest(name: &str) -> Option<&'static Key> {
    let name = plain(name);
    let distance = |key: &Key| {
        let words = std::iter::once(&key.name).chain(key.also);
        words.map(|word| edits(&name, &plain(word))).min().unwrap_or(usize::MAX)
    };
    let key = KEYS.iter().min_by_key(|key| distance(key))?;
    (distance(key) <= (name.chars().count() / 3).max(1)).then_some(key)
}

/// `` `path`, `rule_name`, … ``
pub(crate) fn expected() -> String {
    let names: Vec<_> = KEYS.iter().map(|key| format!("`{}`", key.name)).collect();
    names.join(", ")
}

/// Java's `ruleName` and a dashed `rule-name` are the same word as `rule_name`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// How many letters to insert, delete, replace or swap with their neighbour (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let one_more = table[i - 1][j].min(table[i][j - 1]) + 1;
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let swap = if swapped { table[i - 2][j - 2] + 1 } else { usize::MAX };
                replaced.min(one_more).min(swap)
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_keys_find_their_key() {
        let cases = [
            ("pth", Some("path")),
            ("Path", Some("path")),
            ("value", Some("path")),
            ("ruleName", Some("rule_name")),
            ("rule-name", Some("rule_name")),
            ("name", Some("rule_name")),
            ("description", Some("desc")),
            ("rpcType", Some("rpc_type")),
            ("decs", Some("desc")),
            ("enabeld", Some("enabled")),
            ("registerMetaData", Some("register_meta_data")),
            ("register_metadata", Some("register_meta_data")),
            ("timeout", None),
            ("fetch", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name).map(|key| key.name), expected, "{name}");
        }
    }

    #[test]
    fn documentation_names_every_key_and_rpc_type() {
        let docs: &str = key_docs!();
        for key in KEYS {
            assert!(docs.contains(&format!("\n| `{}` | ", key.example)), "{docs}");
            assert!(key.example.starts_with(&format!("{} = ", key.name)), "{}", key.example);
        }
        for (name, _) in RPC_TYPES {
            assert!(docs.contains(&format!("`\"{name}\"`")), "{docs}");
        }
    }
}
