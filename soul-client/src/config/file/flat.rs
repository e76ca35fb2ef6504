//! A tree of settings as a list, with keys as lenient as Spring's.

use serde_json::Value;

/// One setting: its key as written, its key to compare, its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) written: String,
    pub(super) key: String,
    pub(super) value: String,
}

/// Every value of the tree. Lists are joined by commas, nulls are left out.
pub(super) fn flatten(tree: &Value) -> Vec<Entry> {
    let mut entries = Vec::new();
    walk(tree, "", &mut entries);
    entries
}

fn walk(value: &Value, path: &str, entries: &mut Vec<Entry>) {
    let value = match value {
        Value::Null => return,
        Value::Object(members) => {
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(member, &path, entries);
            }
            return;
        }
        Value::Array(items) => items.iter().filter_map(scalar).collect::<Vec<_>>().join(","),
        other => scalar(other).unwrap_or_default(),
    };
    entries.push(Entry { written: path.to_owned(), key: relaxed(path), value });
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// `contextPath`, `context-path` and `context_path` are one key in Spring.
pub(super) fn relaxed(key: &str) -> String {
    key.chars().filter(|letter| !matches!(letter, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Fills in what `${NAME}` and `${NAME:otherwise}` stand for; the error is a name that stands for nothing.
pub(super) fn resolve(text: &str, lookup: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut resolved = String::new();
    let mut left = text;
    while let Some((before, inside)) = left.split_once("${") {
        let Some((name, after)) = inside.split_once('}') else { break };
        resolved.push_str(before);
        let (name, otherwise) = name.split_once(':').map_or((name, None), |(name, text)| (name, Some(text)));
        match lookup(name).or_else(|| otherwise.map(str::to_owned)) {
            Some(value) => resolved.push_str(&value),
            None => return Err(name.to_owned()),
        }
        left = after;
    }
    resolved.push_str(left);
    Ok(resolved)
}
