//! What somebody may have meant by a key that is not known.

use super::flat::relaxed;

/// Every key of the sections in which an unknown one is a mistake, as people write it.
pub(super) const KNOWN: [(&str, &[&str]); 10] = [
    ("soul.http", FLAT),
    ("soul.springcloud", FLAT),
    ("soul.client", WHERE),
    ("soul.client.props", PROPS),
    ("shenyu.register", WHERE),
    ("shenyu.register.props", &["username", "password", "passwordFile"]),
    ("shenyu.client", WHERE),
    ("shenyu.client.props", PROPS),
    ("shenyu.client.http.props", PROPS),
    ("soul.rust", OURS),
];

const FLAT: &[&str] = &["adminUrl", "contextPath", "appName", "full", "host", "port"];
const WHERE: &[&str] = &["registerType", "serverLists"];
const PROPS: &[&str] = &["contextPath", "appName", "isFull", "host", "port", "protocol", "addPrefixed"];
const OURS: &[&str] = &[
    "username",
    "password",
    "passwordFile",
    "namespace",
    "protocol",
    "dialect",
    "adminsRule",
    "rpcType",
    "preferredNetworks",
    "ignoredInterfaces",
    "caFile",
    "clientCertFile",
    "clientKeyFile",
    "proxy",
    "concurrency",
    "connectTimeout",
    "requestTimeout",
    "refreshInterval",
    "heartbeatInterval",
    "shutdownTimeout",
    "offlineTimeout",
    "propagationTime",
    "stopTimeout",
];

/// The known key most like `written`, if any is like it: one of the same section with another last word, or a word that
/// belongs to another section.
pub(super) fn key(written: &str) -> Option<String> {
    const ALIKE: f64 = 0.8;

    let written = relaxed(written);
    let (section, word) = written.rsplit_once('.').unwrap_or(("", &written));
    let all = || KNOWN.iter().flat_map(|&(section, words)| words.iter().map(move |&word| (section, word)));
    // Beginnings are long and equal, so only the last words are compared.
    let likeness = |(known_section, known): (&str, &str)| {
        let same_section = if relaxed(known_section) == section { 0.1 } else { 0.0 };
        strsim::jaro_winkler(word, &relaxed(known)) + same_section
    };
    let (best, (section, word)) =
        all().map(|known| (likeness(known), known)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best > ALIKE).then(|| format!("{section}.{word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_misplaced_keys_are_understood() {
        for (written, meant) in [
            ("soul.http.contxtPath", Some("soul.http.contextPath")),
            ("soul.http.contextpaht", Some("soul.http.contextPath")),
            ("soul.http.adminURI", Some("soul.http.adminUrl")),
            ("soul.client.serverList", Some("soul.client.serverLists")),
            ("shenyu.register.props.user-name", Some("shenyu.register.props.username")),
            ("soul.rust.requestTimout", Some("soul.rust.requestTimeout")),
            ("soul.http.dialect", Some("soul.rust.dialect")),
            ("soul.http.zzz", None),
        ] {
            assert_eq!(key(written).as_deref(), meant, "{written}");
        }
    }
}
