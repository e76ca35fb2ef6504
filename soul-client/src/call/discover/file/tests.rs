use super::*;

fn parsed(name: &str, text: &str) -> Result<Vec<String>, String> {
    let mut lists = parse(Path::new(name), text)?;
    let list = lists.remove("orders").unwrap_or_default();
    let shown = |u: &Upstream| {
        let word = u.metadata().get("version").map_or("-", String::as_str);
        format!("{} {} {} {} {word}", u.base_url(), u.weight(), u.status(), u.zone().unwrap_or("-"))
    };
    Ok(list.iter().map(shown).collect())
}

const EXPECTED: [&str; 2] = ["http://10.0.0.2:8188 50 true - -", "https://o.example:443 10 false eu-1 2"];

#[test]
fn every_format_says_the_same() {
    let mut files = vec![
        (
            "a.json",
            r#"{"orders": ["10.0.0.2:8188", {"address": "o.example:443", "weight": 10, "enabled": false,
                "zone": "eu-1", "protocol": "https://", "metadata": {"version": 2}}], "stock": []}"#,
        ),
        (
            "a.list",
            "# who\n\norders 10.0.0.2:8188 # first\nstock 10.0.0.9:1\n\
             orders o.example:443 weight=10 enabled=false zone=eu-1 protocol=https:// metadata.version=2\n",
        ),
    ];
    if cfg!(feature = "file") {
        files.push((
            "a.yaml",
            "orders:\n  - 10.0.0.2:8188\n  - {address: \"o.example:443\", weight: 10, enabled: false, zone: eu-1, \
             protocol: \"https://\", metadata: {version: 2}}\n",
        ));
        files.push((
            "a.toml",
            "orders = [\"10.0.0.2:8188\", {address = \"o.example:443\", weight = 10, enabled = false, zone = \"eu-1\", \
             protocol = \"https://\", metadata = {version = 2}}]\n",
        ));
    } else {
        assert!(parsed("a.yaml", "").unwrap_err().contains("feature `file`"));
    }
    for (name, text) in files {
        assert_eq!(parsed(name, text).unwrap(), EXPECTED, "{name}");
    }
}

#[test]
fn a_mistake_is_named_with_its_place_and_remedy() {
    for (name, text, error) in [
        ("a.json", "{", "it is no JSON: EOF"),
        ("a.json", "[]", "it is no table of services"),
        ("a.json", r#"{"orders": "a:1"}"#, "`orders` is no list"),
        ("a.json", r#"{"orders": [7]}"#, "`orders[0]` is `7`, expected an address or a table"),
        ("a.json", r#"{"orders": [{"weight": 1}]}"#, "`orders[0]` has no `address`"),
        (
            "a.json",
            r#"{"orders": ["a:1", "http://a:1/"]}"#,
            "`orders[1].address` is `http://a:1/`, expected `host:port`",
        ),
        ("a.json", r#"{"orders": ["a:0"]}"#, "`orders[0].address` is `a:0`"),
        (
            "a.json",
            r#"{"orders": [{"address": "a:1", "wieght": 1}]}"#,
            "`orders[0]` has `wieght`, expected `address`",
        ),
        ("a", "orders a:1 weight=much", "`line 1.weight` is `much`, expected a whole number"),
        ("a", "\norders", "`line 2` has `orders` and no address"),
        ("a", "orders a:1 b:2", "`line 1` has `b:2`, expected `word=value`"),
        ("a", "orders a:1 protocol=ftp://", "expected `http://` or `https://`"),
        ("a", "orders a:1 enabled=no", "expected `true` or `false`"),
    ] {
        let said = parsed(name, text).unwrap_err();
        assert!(said.contains(error), "{text}: {said}");
    }
}

/// A file of this test alone.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("soul-client-{}-{name}", std::process::id())))
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Waits until the feed is as wanted.
async fn until(
    feed: &mut Feed,
    what: &str,
    wanted: impl Fn(&super::super::Listing) -> bool,
) -> super::super::Listing {
    let waiting = async {
        loop {
            let listing = feed.take();
            if wanted(&listing) {
                return listing;
            }
            assert!(feed.changed().await, "the source ended");
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("no {what}"))
}

#[tokio::test]
async fn a_change_is_read_and_a_mistake_keeps_the_list() {
    let file = Scratch::new("watched.json");
    let source = FileDiscover::new(&file.0).every(Duration::from_millis(5));
    let mut feed = source.watch("orders").unwrap();
    let missing = until(&mut feed, "error", |l| l.failures > 0).await;
    assert!(missing.upstreams.is_none() && missing.error.unwrap().to_string().contains("watched.json"));

    file.write(r#"{"orders": ["10.0.0.2:8188"]}"#);
    let first = until(&mut feed, "list", |l| l.upstreams.is_some()).await;
    assert_eq!((first.revision, first.failures), (1, 0));

    // The same length and perhaps the same time.
    file.write(r#"{"orders": ["10.0.0.3:8188"]}"#);
    let second = until(&mut feed, "other list", |l| l.revision == 2).await;
    assert_eq!(second.upstreams.unwrap()[0].address(), "10.0.0.3:8188");

    file.write(r#"{"orders": ["10.0.0.4:8188""#);
    let kept = until(&mut feed, "mistake", |l| l.failures > 0).await;
    assert_eq!(kept.upstreams.unwrap()[0].address(), "10.0.0.3:8188");
    assert!(kept.error.unwrap().chain().contains("it is no JSON"));

    file.write(r#"{"stock": []}"#);
    let gone =
        until(&mut feed, "unknown service", |l| l.error.as_ref().is_some_and(|e| e.is_unknown_service()));
    assert_eq!(gone.await.revision, 2);
    let listed = source.fetch("stock").await.unwrap();
    assert!(listed.is_empty());
}

#[tokio::test]
async fn a_file_of_the_same_time_and_length_is_not_read_again_but_confirmed() {
    let (file, other) = (Scratch::new("old.json"), Scratch::new("other.json"));
    let old = SystemTime::now() - Duration::from_secs(3600);
    for (scratch, text) in [(&file, "10.0.0.2:8188"), (&other, "10.0.0.9:8188")] {
        scratch.write(&format!("{{\"orders\": [\"{text}\"]}}"));
        std::fs::File::options().write(true).open(&scratch.0).unwrap().set_modified(old).unwrap();
    }
    let mut feed = FileDiscover::new(&file.0).every(Duration::from_millis(5)).watch("orders").unwrap();
    let first = until(&mut feed, "list", |l| l.upstreams.is_some()).await;
    // Whoever reads it would see another list.
    std::fs::rename(&other.0, &file.0).unwrap();
    let renamed = tokio::time::Instant::now();
    let confirmed = until(&mut feed, "confirmation", |l| l.confirmed > Some(renamed)).await;
    assert_eq!((first.revision, confirmed.revision), (1, 1));
}
