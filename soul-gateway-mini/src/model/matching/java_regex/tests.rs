//! What Java 17 answers; each line was run there.

use super::*;

/// Expression, texts that match, texts that do not.
#[rustfmt::skip]
const MATCHES: &[(&str, &[&str], &[&str])] = &[
    ("abc", &["abc"], &["ab", "xabc", "abcd"]),
    ("a|ab", &["a", "ab"], &["b"]),
    ("(a|ab)(c|bcd)", &["abcd", "ac"], &["ab"]),
    ("a.c", &["abc", "a😀c", "a\tc"], &["a\nc", "a\rc", "a\u{85}c", "a\u{2028}c", "ac"]),
    ("(?s)a.c", &["a\nc"], &["ac"]),
    ("(?d)a.c", &["a\rc", "a\u{2028}c"], &["a\nc"]),
    (r"\d+", &["123"], &["１２", "١"]),
    (r"\w+", &["ab_1"], &["é", "订", "a-b"]),
    (r"\s+", &[" \t\u{b}"], &["\u{a0}", "\u{2003}", "\u{85}"]),
    (r"\S+", &["a\u{a0}b"], &["a b"]),
    (r"(?U)\w+\d\s", &["订é_１\u{2003}"], &["-1 "]),
    (r"\h+", &["\u{a0}\u{3000}\t\u{205f}"], &["\n", "\u{85}"]),
    (r"\v+", &["\u{b}\u{2028}\u{85}"], &["\t"]),
    (r"[\v-\x0d]", &["\u{b}", "\u{c}"], &["\n", "\u{2028}"]),
    (r"a\Rb", &["a\r\nb", "a\nb", "a\u{2029}b"], &["a\n\rb"]),
    ("(?i)abC", &["ABc"], &["ab"]),
    ("(?i)é", &["é"], &["É"]),
    ("(?iu)é", &["É"], &["e"]),
    ("(?iu)k", &["K", "\u{212a}"], &["x"]),
    ("(?iu)i", &["I", "İ", "ı"], &["j"]),
    ("(?iu)[α-ω]+", &["ΑΣς"], &["a"]),
    ("(?i)[^a]", &["b"], &["a", "A"]),
    ("(?i)[J-l]+", &["jKL", "^_`m"], &["0"]),
    ("(?i:A)b", &["ab", "Ab"], &["aB"]),
    ("a(?i)b|c", &["aB", "C", "ab"], &["AB"]),
    ("(a(?i)b)c", &["aBc"], &["aBC"]),
    ("(?i)a(?-i)b", &["Ab"], &["AB"]),
    ("(?x) a b # c", &["ab"], &["a b"]),
    ("(?x)[a b]", &["a"], &[" "]),
    ("(?x)[ ^a]", &["^", "a"], &["b", " "]),
    (r"(?x)a\ b", &["a b"], &["ab"]),
    ("[]a]+", &["a]"], &["b"]),
    ("[^]a]", &["b"], &["]", "a"]),
    ("[a-z&&[^bc]]+", &["adz"], &["b", "c"]),
    ("[a-z&&[def]]", &["d"], &["a"]),
    ("[a-z&&def]", &["d"], &["a"]),
    ("[a-d[m-p]]", &["a", "n"], &["f"]),
    ("[^a[b]]", &["c"], &["a", "b"]),
    ("[^a&&[ab]]", &["b", "c"], &["a"]),
    ("[[:alpha:]]+", &["alpha:"], &["abc"]),
    ("[a&b]", &["&"], &["c"]),
    ("[a-]", &["-", "a"], &["b"]),
    ("[a-[b]]", &["-", "a", "b"], &["c"]),
    (r"[\w.-]+", &["a-b.c"], &["a b"]),
    ("[a^]", &["^"], &["b"]),
    ("a{2}{3}", &["aa"], &["aaaaaa", "a"]),
    ("{2}x", &["x"], &["xx"]),
    ("a{2,}", &["aa", "aaa"], &["a"]),
    ("a{0,1}b", &["b", "ab"], &["aab"]),
    ("a*?b+?", &["aabb"], &["a"]),
    ("^*a", &["a"], &["^"]),
    ("a}", &["a}"], &["a"]),
    ("a]", &["a]"], &["a"]),
    (r"\Qa.b\E", &["a.b"], &["axb"]),
    (r"\Qab\E+", &["abb"], &["abab"]),
    (r"[\Q]\E]", &["]"], &["Q"]),
    (r"\Q*\E+", &["***"], &[""]),
    (r"\x41\u0042\0103\cD\e\x{1F600}", &["ABC\u{4}\u{1b}😀"], &["ABC"]),
    (r"\uD83D\uDE00", &["😀"], &["x"]),
    (r"\0608", &["08"], &["088"]),
    (r"\p{L}+", &["订é"], &["1"]),
    (r"\pN\PN", &["1a"], &["11"]),
    (r"\p{Alpha}\p{Punct}\p{XDigit}", &["a+f"], &["é+f", "a+g"]),
    (r"\p{IsHan}\p{IsLatin}\p{script=Greek}", &["订éα"], &["aaa"]),
    (r"\p{IsAlphabetic}\p{IsPunctuation}", &["é»"], &["1»"]),
    (r"\p{InGreek}\p{InBasicLatin}\p{block=Latin-1 Supplement}", &["αaé"], &["aaa"]),
    (r"\p{javaLowerCase}\p{javaWhitespace}", &["é "], &["É ", "é\u{a0}"]),
    (r"(?i)\p{Lu}\p{Lower}", &["aA", "Aa"], &["11"]),
    (r"\ba\b\B", &[], &["a"]),
    (r"\bé\b", &["é"], &["e"]),
    (r"\Aa\z", &["a"], &["a\n"]),
    (r"\Ga\Z", &["a"], &["b"]),
    ("abc$", &["abc"], &["abc\n"]),
    ("(^a$|^b$)", &["a", "b"], &["ab"]),
    ("a$b", &[], &["ab", "a"]),
    ("(?m)^a$", &["a"], &["a\n"]),
    (r"\1", &[], &["", "a", "1"]),
    (r"(a)\2", &[], &["a", "aa"]),
    ("(?<n>a)(?<m>b)", &["ab"], &["a"]),
    ("", &[""], &["a"]),
    ("()|a", &["", "a"], &["b"]),
    ("订单|é", &["订单", "é"], &["订"]),
];

/// Expressions that Java refuses.
#[rustfmt::skip]
const SYNTAX: &[&str] = &[
    "[", "(", ")", "*a", "a**", "a{", "a{,3}", "{a}", "a{2", "a{2,1}", "a{2147483648}",
    "a{1,2147483648}", r"\", r"\y", r"\x4", r"\x{110000}", r"\u12", r"\08", r"\c", r"\k<x>", r"\k",
    "[z-a]", r"[a-\d]", r"[\b]", r"[\1]", "[a", "[]", "[[]a]", "(?", "(?z)", "(?i", "(?<1a>b)", "(?<a",
    "(?<a>b)(?<a>c)", "(?$a)", r"\p{Foo}", r"\p{L", r"\pX", r"\p{InFoo}", r"\p{foo=L}", "(?i)*", "a|*",
    "(?<=(ab)+)c", r"\N", r"\b{gx}", "[&&]", "(?x)a{ 2}", "+",
];

/// Expressions that Java accepts and we cannot run.
#[rustfmt::skip]
const UNSUPPORTED: &[&str] = &[
    "(?=a)b", "(?!a)b", "a(?<=a)", "a(?<!b)", "(?>a)b", "a*+", "a?+", "a{2}+", r"(a)\1", r"(?<n>a)\k<n>",
    r"\X", r"\b{g}a", r"\N{LATIN SMALL LETTER A}", r"[\N{LATIN SMALL LETTER A}]", r"a$\n", r"a\Z\s*",
    r"(?m)^a$\n^b$", r"(a$\s)*", "(?c)a", "(?s)(?m).^a",
];

fn kind(pattern: &str) -> Option<RegexErrorKind> {
    JavaRegex::new(pattern).err().map(|error| error.kind())
}

#[test]
fn texts_match_as_in_java() {
    for (pattern, yes, no) in MATCHES {
        let regex = JavaRegex::new(pattern).unwrap();
        for text in *yes {
            assert!(regex.is_match(text), "{pattern} matches {text:?}");
        }
        for text in *no {
            assert!(!regex.is_match(text), "{pattern} does not match {text:?}");
        }
    }
}

#[test]
fn what_java_refuses_is_a_syntax_error() {
    for pattern in SYNTAX {
        assert_eq!(kind(pattern), Some(RegexErrorKind::Syntax), "{pattern}");
    }
}

#[test]
fn what_needs_backtracking_is_unsupported() {
    for pattern in UNSUPPORTED {
        assert_eq!(kind(pattern), Some(RegexErrorKind::Unsupported), "{pattern}");
    }
}

#[test]
fn a_syntax_error_wins_over_an_unsupported_part() {
    assert_eq!(kind("(?=a)b("), Some(RegexErrorKind::Syntax));
}

#[test]
fn no_expression_takes_much_memory() {
    let long = "a".repeat(MAX_LENGTH + 1);
    let deep = "(".repeat(150) + &")".repeat(150);
    let wide = r"\p{L}".repeat(600);
    let counts = ["a{2147483647}", "((a{1000}){1000}){1000}", r"\p{L}{1000}", &long, &deep, &wide];
    for pattern in counts {
        assert_eq!(kind(pattern), Some(RegexErrorKind::TooLarge), "{pattern}");
    }
    assert_eq!(kind(&"a".repeat(MAX_LENGTH)), None);
}

#[test]
fn errors_say_what_where_and_what_else() {
    let words = |pattern| JavaRegex::new(pattern).unwrap_err().to_string();
    assert_eq!(
        words(r"/a/(?!b)c"),
        "`/a/(?!b)c` has look-ahead at character 4, which cannot run in bounded time; write it without"
    );
    assert_eq!(words("ab[c"), "`ab[c` is not a regular expression: `[` without `]` at character 5");
    // Places are those of the expression as written.
    assert_eq!(
        words(r"\Q...\E*+").split(" at ").nth(1),
        Some("character 8, which cannot run in bounded time; write it without")
    );
}

#[test]
fn nested_repeats_take_linear_time() {
    let start = std::time::Instant::now();
    let regex = JavaRegex::new("([a-zA-Z]+)*$").unwrap();
    let text = "a".repeat(20_000) + "!";
    assert!(!regex.is_match(&text));
    // Java needs about 2^20000 steps; a second is an age for a linear engine, even unoptimised.
    assert!(start.elapsed() < std::time::Duration::from_secs(1));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn pattern() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a", "b", "é", "1", " ", "\n", "-", ".", "^", "$", "|", "(", ")", "(?:", "(?i)", "(?iu)", "(?x)",
            "(?m)", "(?=", "(?<=", "(?<n>", "[", "]", "[^", "&&", "*", "+", "?", "{2}", "{1,}", "{", "}",
            ",", r"\d", r"\W", r"\R", r"\b", r"\Z", r"\x", r"\x41", r"\u", r"\0", r"\c", r"\p{", r"\p{L}",
            r"\1", r"\k<n>", r"\Q", r"\E", r"\", "#",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_expression_panics(pattern in pattern(), text in any::<String>()) {
            let _ = JavaRegex::new(&pattern).map(|regex| regex.is_match(&text));
            let _ = Splitter::new(&pattern).map(|splitter| splitter.split(&text).len());
        }

        #[test]
        fn no_text_panics_as_an_expression(pattern in any::<String>()) {
            let _ = JavaRegex::new(&pattern);
        }

        #[test]
        fn a_quoted_text_matches_itself_alone(text in any::<String>(), other in any::<String>()) {
            let regex = JavaRegex::new(&quote(&text)).unwrap();
            prop_assert!(regex.is_match(&text));
            prop_assert_eq!(regex.is_match(&other), text == other);
        }
    }
}
