//! The last configuration, kept on disk for a gateway that restarts while no admin answers.
//!
//! Two lines of JSON: a head with format version, length and checksum, and the configuration. Written beside and
//! renamed over, so that the file is always whole; a file that is not is reported and never used.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::Held;

/// Name of the file in the data folder.
const FILE: &str = "gateway-config.json";

/// Version of the file's form. A reader refuses all others.
const FORMAT: u32 = 1;

/// Room for the head.
const HEAD: usize = 127;

/// More than any head takes.
const MAX_HEAD: u64 = 1024;

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
    length: u64,
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
    pub(crate) fn load(&self) -> Result<Option<Held>, KeptError> {
        let path = self.path();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(KeptError::Read { path, source }),
        };
        match parse(BufReader::new(file)) {
            Ok(data) => Ok(Some(data)),
            Err(Flaw::Read(source)) => Err(KeptError::Read { path, source }),
            Err(Flaw::Damaged(what)) => Err(KeptError::Damaged { path, what }),
            Err(Flaw::Format(found)) => Err(KeptError::Format { path, found }),
        }
    }

    /// Replaces the kept configuration, all or nothing.
    ///
    /// # Errors
    /// When the file system refuses; the old file is then still there.
    pub(crate) fn save(&self, data: &Held) -> Result<(), KeptError> {
        let path = self.path();
        self.replace(&path, data).map_err(|source| KeptError::Write { path, source })
    }

    fn replace(&self, path: &Path, data: &Held) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // Its own, for a gateway that takes over writes at the same time as the one before it.
        let beside = path.with_extension(format!("{}.tmp", std::process::id()));
        // The head is known last: its place is kept free.
        let mut writer = Summed::new(BufWriter::new(private(&beside)?));
        writer.inner.write_all(&[b' '; HEAD])?;
        writer.inner.write_all(b"\n")?;
        serde_json::to_writer(&mut writer, data)?;
        let Summed { inner: mut file, sum, length } = writer;
        file.write_all(b"\n")?;
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        let head = Head { format: FORMAT, length, md5: hex(&sum) };
        file.write_all(serde_json::to_string(&head)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        // The new name is on disk only when its folder is.
        File::open(&self.folder)?.sync_all()
    }
}

/// Counts and sums up what passes: the file is large, and is never in memory as a whole.
struct Summed<T> {
    inner: T,
    sum: Md5,
    length: u64,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: Md5::new(), length: 0 }
    }

    fn passed(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.length += bytes.len() as u64;
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.passed(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hex(sum: &Md5) -> String {
    format!("{:032x}", u128::from_be_bytes(sum.clone().finalize().into()))
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
    Read(io::Error),
    Damaged(&'static str),
    Format(u32),
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// Reads twice, first for the checksum: what is made of a row is not to be thrown away.
fn parse(mut file: impl BufRead + Seek) -> Result<Held, Flaw> {
    let mut line = Vec::new();
    let head = Read::take(&mut file, MAX_HEAD).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(Flaw::Damaged("it has no head"));
    }
    let Head { format, length, md5 } =
        serde_json::from_slice(&line).map_err(|_| Flaw::Damaged("its head cannot be read"))?;
    if format != FORMAT {
        return Err(Flaw::Format(format));
    }
    let mut sum = Summed::new(io::sink());
    io::copy(&mut Read::take(&mut file, length), &mut sum)?;
    if sum.length < length {
        return Err(Flaw::Damaged("it is cut off"));
    }
    if hex(&sum.sum) != md5 {
        return Err(Flaw::Damaged("its checksum is wrong"));
    }
    file.seek(SeekFrom::Start(head as u64))?;
    serde_json::from_reader(Read::take(file, length))
        .map_err(|_| Flaw::Damaged("its configuration cannot be read"))
}

#[cfg(test)]
mod tests {
    use soul_client::wire::soul::PluginData;

    use super::*;

    fn data() -> Held {
        let plugin =
            PluginData { name: Some("divide".to_owned()), enabled: Some(true), ..PluginData::default() };
        Held { plugins: [plugin].into(), ..Held::default() }
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
