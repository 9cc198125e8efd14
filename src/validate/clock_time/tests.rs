use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Instant {
    let timestamp: Timestamp = text.parse().unwrap();
    Instant(timestamp.as_millisecond())
}

fn next(time: &str, zone: &str, after: &str) -> String {
    let next = ClockTime::new(time, zone).unwrap().next_after(at(after));
    crate::clock::rfc3339(next.unwrap())
}

const ZURICH: &str = "Europe/Zurich";
const NEW_YORK: &str = "America/New_York";

#[test]
fn the_next_time_of_day_is_today_or_tomorrow() {
    for (time, zone, after, expected) in [
        (
            "06:00",
            ZURICH,
            "2026-01-15T00:00:00Z",
            "2026-01-15T05:00:00Z",
        ),
        (
            "06:00",
            ZURICH,
            "2026-07-15T00:00:00Z",
            "2026-07-15T04:00:00Z",
        ),
        (
            "06:00",
            ZURICH,
            "2026-01-15T12:00:00Z",
            "2026-01-16T05:00:00Z",
        ),
        (
            "06:00",
            NEW_YORK,
            "2026-01-15T00:00:00Z",
            "2026-01-15T11:00:00Z",
        ),
        // The reference is at 23:30 of the day before, local time.
        (
            "00:00",
            NEW_YORK,
            "2026-01-15T04:30:00Z",
            "2026-01-15T05:00:00Z",
        ),
        // Across New Year.
        (
            "06:00",
            ZURICH,
            "2026-12-31T06:00:00Z",
            "2027-01-01T05:00:00Z",
        ),
        (
            "23:59",
            NEW_YORK,
            "2027-01-01T03:00:00Z",
            "2027-01-01T04:59:00Z",
        ),
        // Zones without summer time.
        (
            "06:00",
            "Etc/UTC",
            "2026-03-29T00:00:00Z",
            "2026-03-29T06:00:00Z",
        ),
        (
            "06:00",
            "Asia/Kolkata",
            "2026-03-29T01:00:00Z",
            "2026-03-30T00:30:00Z",
        ),
    ] {
        assert_eq!(next(time, zone, after), expected, "{time} {zone} {after}");
    }
}

#[test]
fn the_exact_instant_is_not_after_itself() {
    let exactly = "2026-01-15T05:00:00Z";
    assert_eq!(next("06:00", ZURICH, exactly), "2026-01-16T05:00:00Z");
    let just_before = "2026-01-15T04:59:59.999Z";
    assert_eq!(next("06:00", ZURICH, just_before), exactly);
}

#[test]
fn a_skipped_time_is_the_end_of_the_gap() {
    // Zurich skips 02:00 to 03:00 at 01:00Z, New York at 07:00Z.
    for (time, zone, after, expected) in [
        (
            "02:30",
            ZURICH,
            "2026-03-28T23:00:00Z",
            "2026-03-29T01:00:00Z",
        ),
        (
            "02:00",
            ZURICH,
            "2026-03-28T23:00:00Z",
            "2026-03-29T01:00:00Z",
        ),
        (
            "03:00",
            ZURICH,
            "2026-03-28T23:00:00Z",
            "2026-03-29T01:00:00Z",
        ),
        (
            "01:59",
            ZURICH,
            "2026-03-28T23:00:00Z",
            "2026-03-29T00:59:00Z",
        ),
        // The end of the gap has come, so the next one is a day later.
        (
            "02:30",
            ZURICH,
            "2026-03-29T01:00:00Z",
            "2026-03-30T00:30:00Z",
        ),
        (
            "02:30",
            NEW_YORK,
            "2026-03-08T05:00:00Z",
            "2026-03-08T07:00:00Z",
        ),
        (
            "02:30",
            NEW_YORK,
            "2026-03-08T07:00:00Z",
            "2026-03-09T06:30:00Z",
        ),
        // Samoa had no 2011-12-30.
        (
            "06:00",
            "Pacific/Apia",
            "2011-12-29T16:00:00Z",
            "2011-12-30T10:00:00Z",
        ),
    ] {
        assert_eq!(next(time, zone, after), expected, "{time} {zone} {after}");
    }
}

#[test]
fn of_a_time_that_comes_twice_the_first_counts() {
    // Zurich shows 02:00 to 03:00 twice until 01:00Z, New York 01:00 to 02:00 until 06:00Z.
    for (time, zone, after, expected) in [
        (
            "02:30",
            ZURICH,
            "2026-10-24T23:00:00Z",
            "2026-10-25T00:30:00Z",
        ),
        // Between the two, and at the second.
        (
            "02:30",
            ZURICH,
            "2026-10-25T00:45:00Z",
            "2026-10-26T01:30:00Z",
        ),
        (
            "02:30",
            ZURICH,
            "2026-10-25T01:15:00Z",
            "2026-10-26T01:30:00Z",
        ),
        (
            "01:30",
            NEW_YORK,
            "2026-11-01T04:00:00Z",
            "2026-11-01T05:30:00Z",
        ),
        (
            "01:30",
            NEW_YORK,
            "2026-11-01T05:30:00Z",
            "2026-11-02T06:30:00Z",
        ),
    ] {
        assert_eq!(next(time, zone, after), expected, "{time} {zone} {after}");
    }
}

#[test]
fn the_end_of_the_calendar_has_no_next_time() {
    let time = ClockTime::new("06:00", ZURICH).unwrap();
    assert_eq!(time.next_after(Instant(i64::MAX)), None);
    assert_eq!(
        time.next_after(Instant(Timestamp::MAX.as_millisecond())),
        None
    );
}

#[test]
fn a_text_is_a_time_and_an_existing_zone() {
    for (time, zone, fault) in [
        ("25:00", ZURICH, ClockFault::Time),
        ("24:00", ZURICH, ClockFault::Time),
        ("6:00", ZURICH, ClockFault::Time),
        ("06:0", ZURICH, ClockFault::Time),
        ("06:60", ZURICH, ClockFault::Time),
        ("06:00:00", ZURICH, ClockFault::Time),
        ("+6:00", ZURICH, ClockFault::Time),
        ("0600", ZURICH, ClockFault::Time),
        ("06:00", "Europe/Atlantis", ClockFault::TimeZone),
        ("06:00", "Etc/Unknown", ClockFault::TimeZone),
        ("06:00", "+01:00", ClockFault::TimeZone),
        ("06:00", "CET-1CEST,M3.5.0,M10.5.0/3", ClockFault::TimeZone),
        ("06:00", "", ClockFault::TimeZone),
    ] {
        assert_eq!(ClockTime::new(time, zone), Err(fault), "{time} {zone}");
    }
    let utc = ClockTime::new("00:00", "UTC").unwrap();
    assert_eq!(utc.to_string(), "00:00 UTC");
}

proptest! {
    #[test]
    fn the_next_time_is_after_the_reference_and_within_25_hours(
        seconds in at("2020-01-01T00:00:00Z").0 / 1000..at("2040-01-01T00:00:00Z").0 / 1000,
        minutes in 0..24 * 60_i32,
        zone in prop::sample::select(vec![
            ZURICH, NEW_YORK, "UTC", "Asia/Kolkata", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca",
            "Pacific/Chatham",
        ]),
    ) {
        let time = format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let clock_time = ClockTime::new(&time, zone).unwrap();
        let after = Instant(seconds * 1000);
        let next = clock_time.next_after(after).unwrap();
        let hours = next.since(after).seconds() / 3600.0;
        prop_assert!(hours > 0.0 && hours <= 25.0, "{hours} h");
        // It is that time of day, or the first instant after a gap.
        let local = clock_time.zone.to_datetime(crate::clock::timestamp(next)).time();
        let shown = i32::from(local.hour()) * 60 + i32::from(local.minute());
        let is_gap_end = clock_time.zone.preceding(crate::clock::timestamp(Instant(next.0 + 1))).next()
            .is_some_and(|change| change.timestamp() == crate::clock::timestamp(next));
        prop_assert!(shown == minutes || is_gap_end, "{local} for {time} {zone}");
        // The same from any instant in between.
        let between = Instant(after.0 + next.since(after).0 / 2);
        prop_assert_eq!(clock_time.next_after(between), Some(next));
    }
}
