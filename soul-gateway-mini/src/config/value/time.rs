//! Lengths of time, in seconds.

use std::{fmt, str::FromStr, time::Duration};

use super::BadValue;
use crate::config::layer::Written;

/// Longest time a setting takes: more is surely a slip of the unit (milliseconds for seconds).
const MAX_SECONDS: f64 = 31_536_000.0;

/// Shortest time a setting takes, besides 0 where that means off: timers are no finer, and an interval of less keeps
/// a processor busy with nothing else.
const MIN_TIME: Duration = Duration::from_millis(1);

/// A length of time above zero, written in seconds; fractions are fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Seconds(pub(in crate::config) Duration);

impl Seconds {
    fn from_number(number: f64) -> Result<Self, BadValue> {
        let duration = duration(number)?;
        if duration.is_zero() {
            return Err(BadValue::new("expected more than 0 seconds"));
        }
        Ok(Self(duration))
    }
}

/// A length of time written in seconds, where 0 means off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Interval(pub(in crate::config) Duration);

impl Interval {
    fn from_number(number: f64) -> Result<Self, BadValue> {
        duration(number).map(Self)
    }
}

/// Seconds as a duration; refuses what is negative, no number, or beyond [`MAX_SECONDS`].
fn duration(number: f64) -> Result<Duration, BadValue> {
    if !(0.0..=MAX_SECONDS).contains(&number) {
        return Err(BadValue(format!("expected seconds from 0 to {MAX_SECONDS} (a year)")));
    }
    let duration = Duration::try_from_secs_f64(number).map_err(|e| BadValue(e.to_string()))?;
    // Also what rounds to zero: it would mean off, which is not what was written.
    if number > 0.0 && duration < MIN_TIME {
        return Err(BadValue(format!("expected at least {} seconds", MIN_TIME.as_secs_f64())));
    }
    Ok(duration)
}

fn number(text: &str) -> Result<f64, BadValue> {
    text.parse()
        .map_err(|_| BadValue::new("expected a number of seconds without a unit, such as `10` or `0.5`"))
}

/// Seconds without a unit, as a text and in the file.
macro_rules! seconds_value {
    ($type:ty, $expecting:literal) => {
        impl FromStr for $type {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                Self::from_number(number(text)?)
            }
        }

        number_value!($type, $expecting);
    };
}

impl Written<Duration> for Seconds {
    fn write(field: &Duration) -> Self {
        Self(*field)
    }

    fn read(self) -> Duration {
        self.0
    }
}

impl Written<Duration> for Interval {
    fn write(field: &Duration) -> Self {
        Self(*field)
    }

    fn read(self) -> Duration {
        self.0
    }
}

seconds_value!(Seconds, "a number of seconds above 0");
seconds_value!(Interval, "a number of seconds, 0 for off");

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;

    #[test]
    fn seconds_take_fractions_and_refuse_zero() {
        assert_eq!("0.25".parse(), Ok(Seconds(Duration::from_millis(250))));
        assert_eq!("3".parse(), Ok(Seconds(Duration::from_secs(3))));
        assert!(refusal::<Seconds>("0").contains("more than 0"));
    }

    #[test]
    fn interval_of_zero_is_off() {
        assert_eq!("0".parse(), Ok(Interval(Duration::ZERO)));
        assert_eq!("0.5".parse(), Ok(Interval(Duration::from_millis(500))));
    }

    #[test]
    fn times_that_are_none_are_refused() {
        for text in ["-1", "NaN", "inf", "1e300", "31536001"] {
            assert!(refusal::<Interval>(text).contains("from 0 to 31536000"), "{text}");
        }
        for text in ["0.0009", "1e-9", "1e-300"] {
            assert!(refusal::<Interval>(text).contains("at least 0.001"), "{text}");
            assert!(refusal::<Seconds>(text).contains("at least 0.001"), "{text}");
        }
        assert_eq!("0.001".parse(), Ok(Interval(Duration::from_millis(1))));
        for text in ["10s", "500ms", "", "ten"] {
            assert!(refusal::<Seconds>(text).contains("without a unit"), "{text}");
        }
    }
}
