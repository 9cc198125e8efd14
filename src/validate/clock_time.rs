//! A time of day in a time zone, and the instants at which it comes. Pure.

use std::fmt;
use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use shed_core::time::Instant;

/// The time zones that are compiled in, so that every replica computes the same instants, whatever its image has.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
/// Days after the reference within which the time comes: one day may be skipped by its zone.
const DAYS: i64 = 3;

/// A time of day in a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockTime {
    hour: i8,
    minute: i8,
    zone: TimeZone,
    zone_name: String,
}

/// Why a text is not a time of day in a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockFault {
    /// The time is not HH:MM from 00:00 to 23:59.
    Time,
    /// The time zone does not exist.
    TimeZone,
}

impl ClockTime {
    /// Reads a time such as `06:00`, and the name of a time zone such as `Europe/Zurich`.
    pub fn new(time: &str, time_zone: &str) -> Result<Self, ClockFault> {
        let number = |text: &str| {
            let is_pair = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_pair)
        };
        let parts = time.split_once(':');
        let numbers = parts.and_then(|(hour, minute)| number(hour).zip(number(minute)));
        let (hour, minute) = numbers
            .filter(|(hour, minute)| *hour < 24 && *minute < 60)
            .ok_or(ClockFault::Time)?;
        let zone = ZONES.get(time_zone).ok().filter(|zone| !zone.is_unknown());
        Ok(Self {
            hour,
            minute,
            zone: zone.ok_or(ClockFault::TimeZone)?,
            zone_name: time_zone.to_owned(),
        })
    }

    /// The first instant after this one at which the time comes. Absent at the end of the calendar.
    pub fn next_after(&self, instant: Instant) -> Option<Instant> {
        let after = Timestamp::from_millisecond(instant.0).ok()?;
        let today = self.zone.to_datetime(after).date();
        let days = (0..=DAYS).filter_map(|days| today.checked_add(days.days()).ok());
        let mut instants =
            days.filter_map(|day| self.instant(day.at(self.hour, self.minute, 0, 0)));
        let next = instants.find(|at| *at > after)?;
        Some(Instant(next.as_millisecond()))
    }

    /// The instant of a local time: the first one if the clocks show it twice, and the end of the gap if they skip it.
    fn instant(&self, local: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
            AmbiguousOffset::Gap { after, .. } => {
                // By the later offset a skipped time comes before the change.
                let before_change = after.to_timestamp(local).ok()?;
                let change = self.zone.following(before_change).next()?;
                Some(change.timestamp())
            }
        }
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02} {}", self.hour, self.minute, self.zone_name)
    }
}

#[cfg(test)]
mod tests;
