//! Time in the core: an integer count of milliseconds on the caller's clock. The core never reads a clock; the
//! snapshot has the time.

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since an epoch of the caller's choosing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(pub i64);

/// A length of time in milliseconds; negative when an end lies before its start.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub i64);

impl Instant {
    /// The time from `earlier` to `self`; negative when `earlier` is later.
    pub fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved by `span`, saturating at the ends of the clock.
    pub fn plus(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// A span of whole seconds.
    pub const fn from_seconds(seconds: i64) -> Span {
        Span(seconds.saturating_mul(1000))
    }

    /// A span from fractional seconds, rounded to the nearest millisecond; NaN is zero.
    pub fn from_seconds_f64(seconds: f64) -> Span {
        // `as` saturates and maps NaN to 0, which is the intended result.
        Span((seconds * 1000.0).round() as i64)
    }

    /// This span in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}
