//! The value of a `match` condition on `uri`: patterns separated by commas.

use super::{
    super::{error::MatchError, few::Few, index::Filing},
    AntPattern,
};

/// Characters a list may have; Soul's own database column holds 64.
const MAX_LENGTH: usize = 16 * 1024;

/// Segments with a regular expression a list may have: each may take 1 MiB when compiled.
const MAX_REGEXES: usize = 32;

/// Patterns of which any may match.
///
/// The text is split at every comma, also one inside `{id:\d{1,3}}`; each part is trimmed by Unicode white
/// space and dropped when nothing is left. Parts are tried in order, and one that cannot be evaluated is an
/// error only when none before it matched.
#[derive(Debug)]
pub struct PathPatterns(Few<AntPattern>);

impl PathPatterns {
    /// Compiles a comma-separated list.
    ///
    /// # Errors
    /// When it is larger than we compile. A part with an unusable regular expression is no error here, see
    /// [`problems`](Self::problems).
    pub fn new(list: &str) -> Result<Self, MatchError> {
        check("characters", list.chars().count(), MAX_LENGTH)?;
        let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
        let patterns: Few<AntPattern> = parts.map(AntPattern::new).collect();
        check("regular expressions", patterns.iter().map(AntPattern::regexes).sum(), MAX_REGEXES)?;
        Ok(Self(patterns))
    }

    /// Whether any pattern matches the decoded path.
    ///
    /// # Errors
    /// When a pattern could not be evaluated before one matched.
    pub fn matches(&self, path: &str) -> Result<bool, &MatchError> {
        for pattern in self.0.iter() {
            if pattern.matches(path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ways to find every path that a pattern matches; not to be asked of a list with a problem.
    pub(in crate::model::matching) fn filings(&self) -> Vec<Filing> {
        match &*self.0 {
            [only] => only.filings(),
            several => vec![
                several.iter().flat_map(|pattern| pattern.filings().into_iter().take(1)).flatten().collect(),
            ],
        }
    }

    /// What is wrong with the patterns, in order.
    pub fn problems(&self) -> impl Iterator<Item = &MatchError> {
        self.0.iter().flat_map(AntPattern::problems)
    }
}

fn check(what: &'static str, found: usize, limit: usize) -> Result<(), MatchError> {
    if found > limit { Err(MatchError::PatternTooLarge { what, found, limit }) } else { Ok(()) }
}
