//! The last configuration, kept on disk for a gateway that restarts while no admin answers.
//!
//! Two lines of JSON: a head with format version, length and checksum, and the configuration. Written beside and
//! renamed over, so that the file is always whole; a file that is not is reported and never used.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use soul_client::wire::soul::md5_hex;

use crate::model::ConfigData;

/// Name of the file in the data folder.
const FILE: &str = "gateway-config.json";

/// Version of the file's form. A reader refuses all others.
const FORMAT: u32 = 1;

/// The configuration kept on disk.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    folder: PathBuf,
}

/// Why the kept configuration is of no use, or could not be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    #[error("read the kept configuration `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("the kept configuration `{path}` is damaged ({what}), it is not used")]
    Damaged { path: PathBuf, what: &'static str },
    #[error(
        "the kept configuration `{path}` has format {found}, this version reads {FORMAT}; it is not used"
    )]
    Format { path: PathBuf, found: u32 },
    #[error("keep the configuration in `{path}`")]
    Write { path: PathBuf, source: io::Error },
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    length: usize,
    md5: String,
}

impl Kept {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// The kept configuration; `None` if there is none yet.
    ///
    /// # Errors
    /// When there is one that cannot be read, is damaged, or of another format.
    pub(crate) fn load(&self) -> Result<Option<ConfigData>, KeptError> {
        let path = self.path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(damaged(path, "it is not text")),
            Err(source) => return Err(KeptError::Read { path, source }),
        };
        match parse(&text) {
            Ok(data) => Ok(Some(data)),
            Err(Flaw::Damaged(what)) => Err(damaged(path, what)),
            Err(Flaw::Format(found)) => Err(KeptError::Format { path, found }),
        }
    }

    /// Replaces the kept configuration, all or nothing.
    ///
    /// # Errors
    /// When the file system refuses; the old file is then still there.
    pub(crate) fn save(&self, data: &ConfigData) -> Result<(), KeptError> {
        let path = self.path();
        self.replace(&path, data).map_err(|source| KeptError::Write { path, source })
    }

    fn replace(&self, path: &Path, data: &ConfigData) -> io::Result<()> {
        let body = serde_json::to_string(data)?;
        let head = serde_json::to_string(&Head { format: FORMAT, length: body.len(), md5: md5_hex(&body) })?;
        fs::create_dir_all(&self.folder)?;
        let beside = path.with_extension("tmp");
        let mut file = private(&beside)?;
        for part in [&head, "\n", &body, "\n"] {
            file.write_all(part.as_bytes())?;
        }
        file.sync_all()?;
        fs::rename(&beside, path)?;
        // The new name is on disk only when its folder is.
        File::open(&self.folder)?.sync_all()
    }
}

/// A new file that only its owner may read: the configuration holds the secrets of applications.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

enum Flaw {
    Damaged(&'static str),
    Format(u32),
}

fn parse(text: &str) -> Result<ConfigData, Flaw> {
    let (head, rest) = text.split_once('\n').ok_or(Flaw::Damaged("it has no head"))?;
    let head: Head = serde_json::from_str(head).map_err(|_| Flaw::Damaged("its head cannot be read"))?;
    if head.format != FORMAT {
        return Err(Flaw::Format(head.format));
    }
    let body = rest.get(..head.length).ok_or(Flaw::Damaged("it is cut off"))?;
    if md5_hex(body) != head.md5 {
        return Err(Flaw::Damaged("its checksum is wrong"));
    }
    serde_json::from_str(body).map_err(|_| Flaw::Damaged("its configuration cannot be read"))
}

fn damaged(path: PathBuf, what: &'static str) -> KeptError {
    KeptError::Damaged { path, what }
}

#[cfg(test)]
mod tests {
    use soul_client::wire::soul::PluginData;

    use super::*;

    fn data() -> ConfigData {
        let plugin =
            PluginData { name: Some("divide".to_owned()), enabled: Some(true), ..PluginData::default() };
        ConfigData { plugins: vec![plugin], ..ConfigData::default() }
    }

    #[test]
    fn what_was_kept_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(&folder.path().join("new"));
        assert!(kept.load().unwrap().is_none());
        kept.save(&data()).unwrap();
        kept.save(&data()).unwrap();
        assert_eq!(kept.load().unwrap(), Some(data()));
        let files = fs::read_dir(folder.path().join("new")).unwrap().count();
        assert_eq!(files, 1, "nothing is left beside the file");
    }

    #[test]
    fn every_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(folder.path());
        kept.save(&data()).unwrap();
        let whole = fs::read(kept.path()).unwrap();
        for cut in 0..whole.len() - 1 {
            fs::write(kept.path(), &whole[..cut]).unwrap();
            assert!(kept.load().is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() - 1 {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x01;
            fs::write(kept.path(), &bytes).unwrap();
            assert!(kept.load().is_err(), "bit flipped at {at}");
        }
    }

    #[test]
    fn another_format_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(folder.path());
        fs::write(kept.path(), "{\"format\":2,\"length\":2,\"md5\":\"x\"}\n{}\n").unwrap();
        let error = kept.load().unwrap_err();
        assert!(error.to_string().contains("has format 2, this version reads 1"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(folder.path());
        kept.save(&data()).unwrap();
        assert_eq!(fs::metadata(kept.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
