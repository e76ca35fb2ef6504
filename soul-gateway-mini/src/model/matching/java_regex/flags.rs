//! The flags that `(?…)` sets.

/// Which flags are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// `i`: letters match in either case; ASCII ones only, without `u`.
    pub(super) ignore_case: bool,
    /// `u`: `i` folds all of Unicode.
    pub(super) unicode_case: bool,
    /// `U`: classes such as `\w` are Unicode's.
    pub(super) unicode_classes: bool,
    /// `m`: `^` and `$` match at line breaks.
    pub(super) multi_line: bool,
    /// `s`: `.` matches line breaks.
    pub(super) dot_all: bool,
    /// `d`: only LF is a line break.
    pub(super) unix_lines: bool,
    /// `x`: white space and `#…` do not count.
    pub(super) comments: bool,
}

impl Flags {
    /// Switches the flag of a letter; `false` when the letter is none.
    pub(super) fn set(&mut self, letter: char, on: bool) -> bool {
        match letter {
            'i' => self.ignore_case = on,
            'u' => self.unicode_case = on,
            'm' => self.multi_line = on,
            's' => self.dot_all = on,
            'd' => self.unix_lines = on,
            'x' => self.comments = on,
            'U' => (self.unicode_classes, self.unicode_case) = (on, on),
            _ => return false,
        }
        true
    }
}
