//! A user's statement of how long an attempt of the job takes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// The duration of an attempt from zero, as the job's user expects it before any attempt has shown its own. Both
/// values are quantiles of one distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Quantiles")]
pub struct ExpectedDuration {
    p50: Span,
    #[serde(skip_serializing_if = "Option::is_none")]
    p90: Option<Span>,
}

/// The fields before they are validated.
#[derive(Deserialize)]
struct Quantiles {
    p50: Span,
    #[serde(default)]
    p90: Option<Span>,
}

/// Longer durations (a thousand years) are an overflow.
const LONGEST: Span = Span::from_seconds(31_557_600_000);

/// The error for durations that are not quantiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedDurationError {
    /// The median is not a duration.
    Median,
    /// The 90th percentile is below the median, or not a duration.
    High,
}

impl fmt::Display for ExpectedDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Median => "the median must be above 0 and at most 1000 years",
            Self::High => "the 90th percentile must be at least the median and at most 1000 years",
        })
    }
}

impl std::error::Error for ExpectedDurationError {}

impl ExpectedDuration {
    /// Half of the attempts take at most `p50`, and nine of ten at most `p90`.
    ///
    /// # Errors
    /// If the durations are not positive and ascending.
    pub fn new(p50: Span, p90: Option<Span>) -> Result<Self, ExpectedDurationError> {
        if p50 <= Span(0) || p50 > LONGEST {
            return Err(ExpectedDurationError::Median);
        }
        if p90.is_some_and(|p90| p90 < p50 || p90 > LONGEST) {
            return Err(ExpectedDurationError::High);
        }
        Ok(Self { p50, p90 })
    }

    /// The duration that half of the attempts do not exceed.
    pub fn p50(&self) -> Span {
        self.p50
    }

    /// The duration that nine of ten attempts do not exceed, if the user gave it.
    pub fn p90(&self) -> Option<Span> {
        self.p90
    }
}

impl TryFrom<Quantiles> for ExpectedDuration {
    type Error = ExpectedDurationError;

    fn try_from(raw: Quantiles) -> Result<Self, Self::Error> {
        Self::new(raw.p50, raw.p90)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ExpectedDuration, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn quantiles_are_positive_and_ascending() {
        let seconds = Span::from_seconds;
        let given = |p50, p90: Option<i64>| ExpectedDuration::new(seconds(p50), p90.map(seconds));
        assert!(given(10, None).is_ok() && given(10, Some(10)).is_ok());
        assert_eq!(given(0, None), Err(ExpectedDurationError::Median));
        assert_eq!(given(-1, Some(5)), Err(ExpectedDurationError::Median));
        assert_eq!(given(10, Some(9)), Err(ExpectedDurationError::High));
        let endless = ExpectedDuration::new(Span(i64::MAX), None);
        assert_eq!(endless, Err(ExpectedDurationError::Median));
    }

    #[test]
    fn what_is_read_is_validated() {
        let given = ExpectedDuration::new(Span(1500), Some(Span(2000)));
        let text = serde_json::to_string(&given.unwrap()).unwrap();
        assert_eq!(read(&text), Ok(given.unwrap()));
        assert_eq!(read(r#"{"p50":1500}"#).unwrap().p90(), None);
        assert!(read(r#"{"p50":0}"#).unwrap_err().contains("above 0"));
        assert!(
            read(r#"{"p50":2,"p90":1}"#)
                .unwrap_err()
                .contains("90th percentile")
        );
    }
}
