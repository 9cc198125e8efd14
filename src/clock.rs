//! Conversion between Kubernetes' timestamps and the core's integer milliseconds, and the current
//! time.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use shed_core::time::{Instant, Span};

mod apiserver_clock;

pub use apiserver_clock::{Clock, UNCERTAINTY_MAX};

/// This machine's wall clock, as the core counts it. It may be set at any moment and be wrong, so
/// that nothing is decided by it: see [`Clock`].
pub fn wall() -> Instant {
    Instant(Timestamp::now().as_millisecond())
}

/// The clock that dates objects of tests.
#[cfg(test)]
pub fn now() -> Instant {
    wall()
}

/// A Kubernetes timestamp as the core counts it.
pub fn instant(time: &Time) -> Instant {
    Instant(time.0.as_millisecond())
}

/// A ledger timestamp as the core counts it.
pub fn micro_instant(time: &MicroTime) -> Instant {
    Instant(time.0.as_millisecond())
}

/// The core's instant as a timestamp; the ends of the calendar saturate.
pub fn timestamp(instant: Instant) -> Timestamp {
    Timestamp::from_millisecond(instant.0).unwrap_or(if instant.0 < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

/// For fields of whole seconds: cut, as the apiserver does.
pub fn time(instant: Instant) -> Time {
    let whole_seconds = Instant(instant.0.div_euclid(1000) * 1000);
    Time(timestamp(whole_seconds))
}

/// For fields that keep milliseconds.
pub fn micro_time(instant: Instant) -> MicroTime {
    MicroTime(timestamp(instant))
}

/// RFC 3339, to the second, as in Kubernetes' own fields.
pub fn rfc3339(instant: Instant) -> String {
    time(instant).0.to_string()
}

/// A duration for the runtime's timers: negative spans are zero.
pub fn duration(span: Span) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(span.0).unwrap_or(0))
}
