//! Amounts as a status has them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of at least 0 in thousandths, written as `12.500`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(u64);

const WHOLE: u64 = 1000;

impl Decimal {
    /// The nearest thousandth; 0 for less.
    pub fn nearest(amount: f64) -> Self {
        // `as` saturates, and maps NaN to 0.
        Self((amount * WHOLE as f64).round() as u64)
    }

    /// As a number.
    pub fn value(self) -> f64 {
        self.0 as f64 / WHOLE as f64
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / WHOLE, self.0 % WHOLE)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Text that is no amount counts as 0, so that the next write replaces it.
impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let amount: f64 = text.parse().unwrap_or_default();
        Ok(Self::nearest(amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_three_decimals_and_is_read_back() {
        for (amount, text) in [
            (0.0, "0.000"),
            (84.0004, "84.000"),
            (0.43051, "0.431"),
            (-1.0, "0.000"),
            (f64::NAN, "0.000"),
        ] {
            let decimal = Decimal::nearest(amount);
            assert_eq!(decimal.to_string(), text);
            let read: Decimal = serde_json::from_value(text.into()).unwrap();
            assert_eq!(read, decimal);
        }
        let other: Decimal = serde_json::from_value("much".into()).unwrap();
        assert_eq!(other, Decimal::default());
    }
}
