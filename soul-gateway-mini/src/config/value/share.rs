//! A share of the requests.

use std::{fmt, str::FromStr};

use soul_client::balance::BudgetSettings;

use super::BadValue;
use crate::config::layer::Written;

/// Retries for each request, or `off`, as the SDK's `retry-budget`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::config) struct RetryShare(Option<f64>);

/// More retries than that for each request are no budget.
const MOST: f64 = 1000.0;

impl RetryShare {
    fn from_number(ratio: f64) -> Result<Self, BadValue> {
        if (0.0..=MOST).contains(&ratio) { Ok(Self(Some(ratio))) } else { Err(bad()) }
    }
}

fn bad() -> BadValue {
    BadValue::new("expected retries for each request, for example `0.2`, or `off`")
}

impl FromStr for RetryShare {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "off" => Ok(Self(None)),
            share => Self::from_number(share.parse().map_err(|_| bad())?),
        }
    }
}

impl fmt::Display for RetryShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ratio) => ratio.fmt(f),
            None => f.write_str("off"),
        }
    }
}

number_value!(RetryShare, "a number of retries for each request, or \"off\"");

impl Written<Option<BudgetSettings>> for RetryShare {
    fn write(field: &Option<BudgetSettings>) -> Self {
        Self(field.map(|budget| budget.ratio))
    }

    fn read(self) -> Option<BudgetSettings> {
        self.0.map(|ratio| BudgetSettings { ratio, ..BudgetSettings::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;

    #[test]
    fn a_share_is_a_number_or_off() {
        assert_eq!("0.2".parse(), Ok(RetryShare::write(&Some(BudgetSettings::default()))));
        assert_eq!("off".parse::<RetryShare>().map(Written::read), Ok(None::<BudgetSettings>));
        for text in ["-1", "20%", "", "1001", "NaN"] {
            assert!(refusal::<RetryShare>(text).contains("or `off`"), "{text}");
        }
    }
}
