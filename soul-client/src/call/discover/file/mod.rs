//! Lists in a file, read again when it changed.

mod lines;
mod tree;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::sleep;

use super::{BoxFuture, Discover, DiscoverError, Feed, Listed, Publisher, feed};
use crate::{balance::Upstream, call::guard::guarded_blocking};

/// Learns upstreams from a file that somebody else writes.
///
/// The name's ending says what it is: `.json`; `.yaml`, `.yml` and `.toml` with the feature `file`; anything else is lines. A tree has a
/// list for each service, of addresses or of tables:
///
/// ```json
/// {
///   "orders": ["10.0.0.2:8188", {"address": "10.0.0.3:8188", "weight": 10, "zone": "eu-1"}],
///   "stock": [{"address": "stock:443", "protocol": "https://", "metadata": {"version": "2"}}]
/// }
/// ```
///
/// Lines have the service, the address and the same words; `#` begins a comment:
///
/// ```text
/// orders 10.0.0.2:8188
/// orders 10.0.0.3:8188 weight=10 zone=eu-1
/// stock  stock:443 protocol=https:// metadata.version=2
/// ```
///
/// Besides these, `enabled` (`false` takes no traffic) is known; an unknown word is an error. A file that cannot be read or understood keeps
/// the last lists. It is looked at every second, and read when its time or length is another one.
///
/// # Examples
/// ```no_run
/// use soul_client::call::{Membership, discover::FileDiscover};
///
/// # fn run() -> Result<(), soul_client::Error> {
/// let orders = Membership::builder("orders").source(FileDiscover::new("/etc/upstreams.json")).spawn()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileDiscover {
    path: Arc<Path>,
    every: Duration,
}

/// The lists of a file.
type Lists = HashMap<String, Vec<Upstream>>;

impl FileDiscover {
    /// How often a file is looked at unless set.
    pub const EVERY: Duration = Duration::from_secs(1);

    /// Reads this file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into().into(), every: Self::EVERY }
    }

    /// Sets how often the file is looked at.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }
}

impl Discover for FileDiscover {
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        let (path, service) = (Arc::clone(&self.path), service.to_owned());
        Box::pin(async move {
            match guarded_blocking(move || read(&path, &service)).await {
                Ok(listed) => listed,
                Err(panicked) => {
                    Err(DiscoverError::new(format!("read {}", self.describe())).with_source(panicked))
                }
            }
        })
    }

    fn watch(&self, service: &str) -> Option<Feed> {
        let (publisher, feed) = feed();
        let follow = follow(self.clone(), service.to_owned(), publisher.clone());
        // Ends with the one who listens.
        tokio::spawn(async move {
            tokio::select! {
                () = follow => {}
                () = publisher.closed() => {}
            }
        });
        Some(feed)
    }

    fn describe(&self) -> String {
        format!("the file `{}`", self.path.display())
    }
}

/// What tells one content of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    length: u64,
}

/// A file whose time is younger than this may change once more without another time.
const SETTLES: Duration = Duration::from_secs(2);

impl Stamp {
    /// `None` for a file that cannot be told from what it will be in a moment, or that is not there.
    fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        let modified = about.modified().ok()?;
        modified.elapsed().is_ok_and(|age| age > SETTLES).then_some(Self { modified, length: about.len() })
    }
}

async fn follow(source: FileDiscover, service: String, publisher: Publisher) {
    let mut known = None;
    loop {
        let (path, name) = (Arc::clone(&source.path), service.clone());
        let look = move || {
            // Before the content: what is written between the two is then read next time.
            let stamp = Stamp::of(&path);
            let is_known = stamp.is_some() && stamp == known;
            (stamp, (!is_known).then(|| read(&path, &name)))
        };
        match guarded_blocking(look).await {
            Ok((_, None)) => publisher.confirm(),
            Ok((stamp, Some(listed))) => {
                known = stamp.filter(|_| listed.is_ok());
                publisher.report(listed);
            }
            Err(panicked) => {
                publisher
                    .fail(DiscoverError::new(format!("read {}", source.describe())).with_source(panicked));
            }
        }
        sleep(source.every).await;
    }
}

/// The list of a service as the file has it now.
fn read(path: &Path, service: &str) -> Listed {
    let shown = path.display();
    let error = |text: String| DiscoverError::new(text);
    let text = std::fs::read_to_string(path)
        .map_err(|e| error(format!("read the file `{shown}`")).with_source(e))?;
    let lists = parse(path, &text);
    let mut lists = lists.map_err(|why| error(format!("understand the file `{shown}`")).with_source(why))?;
    lists.remove(service).ok_or_else(|| {
        DiscoverError::unknown_service(format!("look for `{service}` in the file `{shown}`: it is not there"))
    })
}

fn parse(path: &Path, text: &str) -> Result<Lists, String> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => tree::read(serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?),
        #[cfg(feature = "file")]
        Some("yaml" | "yml") => tree::read(
            serde_saphyr::from_str(text)
                .map_err(|e| format!("it is no YAML: {}", e.to_string().trim_end()))?,
        ),
        #[cfg(feature = "file")]
        Some("toml") => tree::read(
            toml::from_str(text).map_err(|e| format!("it is no TOML: {}", e.to_string().trim_end()))?,
        ),
        #[cfg(not(feature = "file"))]
        Some(ending @ ("yaml" | "yml" | "toml")) => Err(format!(
            "`.{ending}` is read with the feature `file` of `soul-client` only: turn it on, or write JSON or lines"
        )),
        _ => lines::read(text),
    }
}

#[cfg(test)]
mod tests;
