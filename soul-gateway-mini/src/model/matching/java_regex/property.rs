//! `\p{…}`: Unicode properties, POSIX names and Java's own.

use super::{
    blocks::block,
    error::{RegexErrorKind, Trouble},
    parse::Parser,
    scan::Parsed,
    set::{Set, engine, negated, set},
};

/// ASCII `\d`.
pub(super) const DIGIT: [(u32, u32); 1] = [(0x30, 0x39)];

/// ASCII `\s`.
pub(super) const SPACE: [(u32, u32); 2] = [(0x09, 0x0d), (0x20, 0x20)];

/// The general categories by Java's names, which are the engine's too. Surrogates are in no Rust text.
const CATEGORIES: [&str; 36] = [
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp", "Cc", "Cf",
    "Co", "Pd", "Ps", "Pe", "Pc", "Po", "Sm", "Sc", "Sk", "So", "Pi", "Pf", "L", "M", "N", "Z", "C", "P",
    "S",
];

/// `\p{Upper}` and the like with flag `i`.
const CASED: &str = r"[\p{Lowercase}\p{Uppercase}\p{Lt}]";

impl Parser {
    /// The set of a property, from behind its `\p` on.
    pub(super) fn property(&mut self) -> Parsed<Set> {
        let at = self.scan.written();
        let name = self.property_name()?;
        let found = match name.split_once('=') {
            Some((key, value)) => self.keyed(&key.to_ascii_lowercase(), value),
            None => self.named(&name),
        };
        let what = || format!("the unknown property `{name}`");
        found.ok_or_else(|| Trouble { kind: RegexErrorKind::Syntax, at, what: what() })
    }

    /// One letter, or any text in braces.
    fn property_name(&mut self) -> Parsed<String> {
        if !self.scan.eat('{') {
            return match self.scan.take() {
                Some(c) => Ok(c.to_string()),
                None => self.scan.syntax("`\\p` without a property"),
            };
        }
        let mut name = String::new();
        while let Some(c) = self.scan.take_raw() {
            if c == '}' {
                return Ok(name);
            }
            name.push(c);
        }
        self.scan.syntax("`\\p{` without `}`")
    }

    fn keyed(&self, key: &str, value: &str) -> Option<Set> {
        match key {
            "sc" | "script" => script(value),
            "blk" | "block" => block(value),
            "gc" | "general_category" => self.java(value),
            _ => None,
        }
    }

    fn named(&self, name: &str) -> Option<Set> {
        if let Some(name) = name.strip_prefix("In") {
            return block(name);
        }
        if let Some(name) = name.strip_prefix("Is") {
            return self.unicode(name).or_else(|| self.java(name)).or_else(|| script(name));
        }
        let unicode = self.scan.flags.unicode_classes.then(|| self.posix_in_unicode(name)).flatten();
        unicode.or_else(|| self.java(name))
    }

    /// `wide` with flag `i`, where letters of either case are wanted.
    fn cased(&self, exact: &str, wide: &str) -> Option<Set> {
        engine(if self.scan.flags.ignore_case { wide } else { exact })
    }

    /// General categories, ASCII's POSIX classes and the methods of Java's `Character`.
    fn java(&self, name: &str) -> Option<Set> {
        match name {
            "Lu" | "Ll" | "Lt" => self.cased(&format!(r"\p{{{name}}}"), r"[\p{Lu}\p{Ll}\p{Lt}]"),
            "LC" => engine(r"[\p{Lu}\p{Ll}\p{Lt}]"),
            "LD" => engine(r"[\p{L}\p{Nd}]"),
            "L1" => Some(set(&[(0, 0xff)])),
            "Cs" => Some(Set::empty()),
            "all" => Some(negated(Set::empty())),
            name if CATEGORIES.contains(&name) => engine(&format!(r"\p{{{name}}}")),
            "ASCII" => Some(set(&[(0, 0x7f)])),
            "Alnum" => engine("[0-9A-Za-z]"),
            "Alpha" => engine("[A-Za-z]"),
            "Blank" => engine(r"[\t ]"),
            "Cntrl" => engine(r"[\x00-\x1f\x7f]"),
            "Digit" => Some(set(&DIGIT)),
            "Graph" => engine("[!-~]"),
            "Lower" => self.cased("[a-z]", "[A-Za-z]"),
            "Print" => engine("[ -~]"),
            "Punct" => engine("[!-/:-@\\[-`{-~]"),
            "Space" => Some(set(&SPACE)),
            "Upper" => self.cased("[A-Z]", "[A-Za-z]"),
            "XDigit" => engine("[0-9A-Fa-f]"),
            _ => self.character_method(name.strip_prefix("java")?),
        }
    }

    /// `\p{javaLetter}` is `Character.isLetter`.
    fn character_method(&self, name: &str) -> Option<Set> {
        const IGNORABLE: &str = r"\x00-\x08\x0e-\x1b\x7f-\x9f\p{Cf}";
        let class = match name {
            "LowerCase" => return self.cased(r"\p{Lowercase}", CASED),
            "UpperCase" => return self.cased(r"\p{Uppercase}", CASED),
            "TitleCase" => return self.cased(r"\p{Lt}", CASED),
            "Alphabetic" => r"\p{Alphabetic}".to_owned(),
            "Ideographic" => r"\p{Ideographic}".to_owned(),
            "Digit" => r"\p{Nd}".to_owned(),
            "Defined" => r"\P{Cn}".to_owned(),
            "Letter" => r"\p{L}".to_owned(),
            "LetterOrDigit" => r"[\p{L}\p{Nd}]".to_owned(),
            "JavaIdentifierStart" => r"[\p{L}\p{Nl}\p{Sc}\p{Pc}]".to_owned(),
            "JavaIdentifierPart" => {
                format!(r"[\p{{L}}\p{{Nl}}\p{{Sc}}\p{{Pc}}\p{{Nd}}\p{{Mn}}\p{{Mc}}{IGNORABLE}]")
            }
            "UnicodeIdentifierStart" => r"\p{ID_Start}".to_owned(),
            "UnicodeIdentifierPart" => format!(r"[\p{{ID_Continue}}{IGNORABLE}]"),
            "IdentifierIgnorable" => format!("[{IGNORABLE}]"),
            "SpaceChar" => r"\p{Z}".to_owned(),
            "Whitespace" => r"[\t-\r\x1c-\x1f\p{Z}--\x{a0}\x{2007}\x{202f}]".to_owned(),
            "ISOControl" => r"[\x00-\x1f\x7f-\x9f]".to_owned(),
            "Mirrored" => r"\p{Bidi_Mirrored}".to_owned(),
            _ => return None,
        };
        engine(&class)
    }

    /// Unicode's properties, by their names in any case.
    fn unicode(&self, name: &str) -> Option<Set> {
        match name.to_ascii_uppercase().as_str() {
            "ALPHABETIC" => engine(r"\p{Alphabetic}"),
            "ASSIGNED" => engine(r"\P{Cn}"),
            "CONTROL" => engine(r"\p{Cc}"),
            "HEXDIGIT" | "HEX_DIGIT" => engine(r"[\p{Nd}\p{Hex_Digit}]"),
            "IDEOGRAPHIC" => engine(r"\p{Ideographic}"),
            "JOINCONTROL" | "JOIN_CONTROL" => engine(r"\p{Join_Control}"),
            "LETTER" => engine(r"\p{L}"),
            "LOWERCASE" => self.cased(r"\p{Lowercase}", CASED),
            "UPPERCASE" => self.cased(r"\p{Uppercase}", CASED),
            "TITLECASE" => self.cased(r"\p{Lt}", CASED),
            "NONCHARACTERCODEPOINT" | "NONCHARACTER_CODE_POINT" => engine(r"\p{Noncharacter_Code_Point}"),
            "PUNCTUATION" => engine(r"\p{P}"),
            "WHITESPACE" | "WHITE_SPACE" => engine(r"\s"),
            "WORD" => engine(r"\w"),
            posix => self.posix_in_unicode(posix),
        }
    }

    /// POSIX names with flag `U`.
    fn posix_in_unicode(&self, name: &str) -> Option<Set> {
        match name.to_ascii_uppercase().as_str() {
            "ALPHA" => engine(r"\p{Alphabetic}"),
            "LOWER" => self.cased(r"\p{Lowercase}", CASED),
            "UPPER" => self.cased(r"\p{Uppercase}", CASED),
            "SPACE" => engine(r"\s"),
            "PUNCT" => engine(r"\p{P}"),
            "XDIGIT" => engine(r"[\p{Nd}\p{Hex_Digit}]"),
            "ALNUM" => engine(r"[\p{Alphabetic}\p{Nd}]"),
            "CNTRL" => engine(r"\p{Cc}"),
            "DIGIT" => engine(r"\p{Nd}"),
            "BLANK" => engine(r"[\p{Zs}\t]"),
            "GRAPH" => engine(r"[^\s\p{Cc}\p{Cn}]"),
            "PRINT" => engine(r"[[^\s\p{Cc}\p{Cn}][\p{Zs}\t]--\p{Cc}]"),
            _ => None,
        }
    }
}

/// A script by its name or its code of four letters, in any case.
fn script(name: &str) -> Option<Set> {
    if ["UNKNOWN", "ZZZZ"].contains(&name.to_ascii_uppercase().as_str()) {
        return engine(r"[\p{Cn}\p{Co}]");
    }
    let is_name = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    is_name.then(|| engine(&format!(r"\p{{sc={name}}}"))).flatten()
}
