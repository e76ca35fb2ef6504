//! The access log: one line for every request, if it is asked for.
//!
//! A line is put together by hand into a buffer of the lane, and the buffer is written when it is full and twice a second:
//! a system call for a hundred lines, where one for each would cost as much as a tenth of the whole request.

use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use http::{Method, StatusCode, Uri};

use super::{GatewayConfig, GatewayError};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 32 * 1024;

/// Name of the file that stands for the standard output.
const STDOUT: &str = "-";

/// Where the lines of all lanes go.
#[derive(Debug)]
pub(super) struct AccessLog {
    /// Locked while lines are written, so that none is written to a file after another has taken its place.
    place: Mutex<Place>,
    /// Whether anybody wants lines.
    wanted: AtomicBool,
    /// Whether it was told that lines are lost.
    told: AtomicBool,
}

#[derive(Debug)]
pub(super) enum Place {
    Nowhere,
    File(File),
    Stdout,
}

impl Place {
    /// Opens what the settings say.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn of(config: &GatewayConfig) -> Result<Self, GatewayError> {
        let path = config.access_log.as_deref();
        let failed =
            |source| GatewayError::AccessLog { path: path.map(Path::to_owned).unwrap_or_default(), source };
        Self::open(path).map_err(failed)
    }

    /// Opens a file to add to, or the standard output for `-`; `None` takes no lines.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn open(path: Option<&Path>) -> io::Result<Self> {
        Ok(match path {
            None => Self::Nowhere,
            Some(path) if path == Path::new(STDOUT) => Self::Stdout,
            Some(path) => Self::File(OpenOptions::new().create(true).append(true).open(path)?),
        })
    }

    fn is_wanted(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }
}

impl AccessLog {
    pub(super) fn new(place: Place) -> Self {
        let wanted = AtomicBool::new(place.is_wanted());
        Self { place: Mutex::new(place), wanted, told: AtomicBool::new(false) }
    }

    /// Goes on at another place, which may be a file of the same name: the old one was moved away. Every line is in one of
    /// the two, whole; where no more are wanted, those of `lines` that were are written first.
    pub(super) fn go_on<'l>(&self, place: Place, lines: impl Iterator<Item = &'l Lines>) {
        self.wanted.store(place.is_wanted(), Relaxed);
        if !place.is_wanted() {
            lines.for_each(Lines::flush);
        }
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    fn write(&self, lines: &[u8]) {
        let written = match &*self.place.lock().unwrap_or_else(PoisonError::into_inner) {
            Place::Nowhere => Ok(()),
            Place::File(file) => { file }.write_all(lines),
            Place::Stdout => io::stdout().lock().write_all(lines),
        };
        match written {
            Ok(()) => self.told.store(false, Relaxed),
            Err(error) if !self.told.swap(true, Relaxed) => {
                tracing::warn!(%error, "lines of the access log are lost");
            }
            Err(_) => {}
        }
    }
}

/// The lines of one lane that are not written yet.
#[derive(Debug)]
pub(super) struct Lines {
    log: Arc<AccessLog>,
    buffer: Mutex<String>,
}

/// What a line tells.
pub(super) struct Entry<'a> {
    /// When the request was over, milliseconds since the epoch.
    pub(super) time_ms: i64,
    pub(super) peer: &'a str,
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) status: StatusCode,
    pub(super) selector: Option<&'a str>,
    pub(super) rule: Option<&'a str>,
    pub(super) upstream: Option<&'a str>,
    pub(super) retries: u32,
    pub(super) elapsed: Duration,
}

impl Lines {
    pub(super) fn new(log: Arc<AccessLog>) -> Self {
        Self { log, buffer: Mutex::default() }
    }

    /// Whether anybody wants lines.
    pub(super) fn are_wanted(&self) -> bool {
        self.log.wanted.load(Relaxed)
    }

    /// Adds a line, if it is wanted.
    pub(super) fn add(&self, entry: &Entry<'_>) {
        let mut buffer = self.lock();
        // Once more: they may have been written for the last time just now.
        if !self.are_wanted() {
            return;
        }
        entry.write(&mut buffer);
        if buffer.len() >= BUFFER {
            self.log.write(buffer.as_bytes());
            buffer.clear();
        }
    }

    /// Writes what there is.
    pub(super) fn flush(&self) {
        let mut buffer = self.lock();
        if !buffer.is_empty() {
            self.log.write(buffer.as_bytes());
            buffer.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        // A line that was cut short by a panic is the worst that can be in there.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry<'_> {
    /// One JSON object and the end of a line. By hand: the formatting of the standard library takes five times as long.
    fn write(&self, line: &mut String) {
        line.push_str(r#"{"time_ms":"#);
        number(line, self.time_ms.unsigned_abs());
        for (name, value) in [
            (r#","peer":"#, Some(self.peer)),
            (r#","method":"#, Some(self.method.as_str())),
            (r#","path":"#, Some(self.uri.path())),
        ] {
            field(line, name, value);
        }
        line.push_str(r#","status":"#);
        number(line, self.status.as_u16().into());
        field(line, r#","selector":"#, self.selector);
        field(line, r#","rule":"#, self.rule);
        field(line, r#","upstream":"#, self.upstream);
        line.push_str(r#","retries":"#);
        number(line, self.retries.into());
        line.push_str(r#","elapsed_ms":"#);
        let micros = u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX);
        number(line, micros / 1000);
        let rest = micros % 1000;
        line.push_str(if rest < 10 {
            ".00"
        } else if rest < 100 {
            ".0"
        } else {
            "."
        });
        number(line, rest);
        line.push_str("}\n");
    }
}

fn field(line: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        line.push_str(name);
        text(line, value);
    }
}

fn number(line: &mut String, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.push_str(std::str::from_utf8(&digits[start..]).unwrap_or_default());
}

/// A text in quotes, such that no caller can end it, or the line.
fn text(line: &mut String, mut text: &str) {
    line.push('"');
    while let Some(at) = text.bytes().position(|byte| IS_ESCAPED[usize::from(byte)]) {
        line.push_str(&text[..at]);
        // OK to ignore: a `String` takes everything.
        let _ = write!(line, "\\u{:04x}", text.as_bytes()[at]);
        text = &text[at + 1..];
    }
    line.push_str(text);
    line.push('"');
}

/// By byte: controls, quotes and backslashes.
const IS_ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        table[byte as usize] = matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f);
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::check_fields;

    #[test]
    fn a_line_is_an_object_whatever_a_caller_sends() {
        let uri: Uri = "/a\"},\\x?secret".parse().unwrap();
        let entry = Entry {
            time_ms: 1_700_000_000_000,
            peer: "::1",
            method: &Method::GET,
            uri: &uri,
            status: StatusCode::OK,
            selector: Some("line\nend"),
            rule: None,
            upstream: Some("10.0.0.2:8188"),
            retries: 1,
            elapsed: Duration::from_micros(12_034),
        };
        let mut line = String::new();
        entry.write(&mut line);
        assert_eq!(line.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["path"], "/a\"},\\x", "the query is nobody's business");
        let all = Entry { rule: Some("/a/**"), ..entry };
        let mut line = String::new();
        all.write(&mut line);
        check_fields("Lines of the access log", &serde_json::from_str(&line).unwrap());
        assert_eq!((&value["selector"], value["elapsed_ms"].as_f64()), (&"line\nend".into(), Some(12.034)));
        assert_eq!((value.get("rule"), &value["time_ms"]), (None, &1_700_000_000_000_i64.into()));
        assert_eq!(
            (&value["status"], &value["retries"], &value["peer"]),
            (&200.into(), &1.into(), &"::1".into())
        );
    }

    #[test]
    fn lines_are_written_when_there_are_many_and_when_they_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let lines = Lines::new(Arc::new(AccessLog::new(Place::open(Some(&path)).unwrap())));
        let uri: Uri = "/x".parse().unwrap();
        let entry = Entry {
            time_ms: 1_700_000_000_000,
            peer: "::1",
            method: &Method::GET,
            uri: &uri,
            status: StatusCode::OK,
            selector: None,
            rule: None,
            upstream: None,
            retries: 0,
            elapsed: Duration::ZERO,
        };
        lines.add(&entry);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        lines.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        (0..BUFFER).for_each(|_| lines.add(&entry));
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.ends_with("}\n") && written.len() > BUFFER);

        lines.add(&entry);
        lines.log.go_on(Place::open(None).unwrap(), [&lines].into_iter());
        lines.add(&entry);
        lines.flush();
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(!lines.are_wanted());
        assert_eq!(written.lines().count(), BUFFER + 2, "all that were wanted");
    }
}
