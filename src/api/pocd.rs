//! PoCD as a status has it.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A probability of completion before the deadline in thousandths, written as `0.982`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pocd(u16);

const WHOLE: u16 = 1000;

impl Pocd {
    /// PoCD of a job that met its deadline.
    pub const MET: Self = Self(WHOLE);
    /// PoCD of a job that missed its deadline.
    pub const MISSED: Self = Self(0);

    /// The nearest thousandth.
    pub fn nearest(probability: f64) -> Self {
        // `as` saturates, and maps NaN to 0.
        Self(((probability * f64::from(WHOLE)).round() as u16).min(WHOLE))
    }

    /// As a number from 0 to 1.
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// By how much two differ.
    pub fn distance(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl fmt::Display for Pocd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / WHOLE, self.0 % WHOLE)
    }
}

impl Serialize for Pocd {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Text that is not a probability is an error.
impl<'de> Deserialize<'de> for Pocd {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        read(&text).ok_or_else(|| D::Error::custom("a PoCD is a number from 0 to 1"))
    }
}

fn read(text: &str) -> Option<Pocd> {
    let probability: f64 = text.parse().ok()?;
    let sound = (0.0..=1.0).contains(&probability);
    sound.then(|| Pocd::nearest(probability))
}

/// For `#[serde(deserialize_with)]`: text that is not a probability counts as none, so that the next write
/// replaces it.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Pocd>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.as_deref().and_then(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_has_three_decimals() {
        for (probability, text) in [
            (0.0, "0.000"),
            (0.9824, "0.982"),
            (0.9996, "1.000"),
            (f64::NAN, "0.000"),
            (2.0, "1.000"),
        ] {
            assert_eq!(Pocd::nearest(probability).to_string(), text);
        }
    }

    #[test]
    fn what_is_written_is_read_and_other_text_is_none() {
        let read = |text: &str| deserialize(serde_json::Value::from(text)).unwrap();
        for thousandths in 0..=WHOLE {
            let pocd = Pocd(thousandths);
            assert_eq!(read(&pocd.to_string()), Some(pocd));
        }
        assert_eq!((read("high"), read("1.5"), read("NaN")), (None, None, None));
    }
}
