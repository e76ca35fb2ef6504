//! Numbers as Java reads them from text and writes them.

/// What Gson's `nextLong` makes of the text of a number or string: a long, or a double without fraction.
///
/// A double beyond the range of a long that equals its nearest long is taken as that long, as in Java: 2^63 reads as
/// 2^63 - 1.
pub(super) fn integer(text: &str) -> Option<i64> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(value);
    }
    let value = double(text)?;
    // Saturates, and NaN gives 0, as Java's cast does.
    #[allow(clippy::cast_possible_truncation)]
    let whole = value as i64;
    #[allow(clippy::cast_precision_loss, clippy::float_cmp)]
    let exact = whole as f64 == value;
    exact.then_some(whole)
}

/// What Java's `Double.parseDouble` makes of a text, but for hexadecimal fractions, which are refused.
pub(super) fn double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" if text.starts_with('-') => return Some(f64::NEG_INFINITY),
        "Infinity" => return Some(f64::INFINITY),
        _ => {}
    }
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    // Rust also reads `inf` and `nan` in any case; Java does not.
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    if plain { digits.parse().ok() } else { None }
}

/// Whether a text is a number by the JSON grammar, which is when Gson calls it a number and not a string.
pub(super) fn is_json_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let (whole, rest) = split_digits(rest);
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return false;
    }
    let rest = match rest.strip_prefix('.').map(split_digits) {
        Some(("", _)) => return false,
        Some((_, rest)) => rest,
        None => rest,
    };
    match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => {
            let (digits, rest) = split_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
            !digits.is_empty() && rest.is_empty()
        }
        None => rest.is_empty(),
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The text of a finite double as Java's `Double.toString` gives it: `1.0`, `1.0E10`, `1.5E-5`.
pub(super) fn double_text(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0E{exponent}"),
        _ => text,
    }
}
