//! Values with their units, as Grafana's units show them.

use jiff::Timestamp;
use shed_sim::cli::chart::number;

/// A value in a unit of Grafana.
pub fn shown(value: f64, unit: &str) -> String {
    match unit {
        _ if value.is_nan() => "–".to_owned(),
        "percentunit" => format!("{} %", number(round(100.0 * value))),
        "s" => duration(value),
        "bytes" => bytes(value),
        "Bps" => format!("{}/s", bytes(value)),
        "cps" | "wps" => format!("{}/s", number(round(value))),
        "dateTimeAsIso" => instant(value),
        _ => number(round(value)),
    }
}

/// Three digits are enough to read.
fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 10.0_f64.powi(2 - value.abs().log10().floor() as i32);
    (value * digits).round() / digits
}

fn duration(seconds: f64) -> String {
    let (size, unit) = match seconds.abs() {
        small if small < 1.0 => (0.001, "ms"),
        some if some < 120.0 => (1.0, "s"),
        many if many < 7200.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    };
    format!("{} {unit}", number(round(seconds / size)))
}

fn bytes(value: f64) -> String {
    let (size, unit) = match value.abs() {
        small if small < 1024.0 => (1.0, "B"),
        some if some < 1024.0 * 1024.0 => (1024.0, "KiB"),
        _ => (1024.0 * 1024.0, "MiB"),
    };
    format!("{} {unit}", number(round(value / size)))
}

/// Milliseconds since 1970.
fn instant(millis: f64) -> String {
    let time = Timestamp::from_millisecond(millis as i64);
    time.map_or_else(
        |_| "–".to_owned(),
        |time| time.strftime("%H:%M:%S").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units_and_few_digits() {
        let cases = [
            (0.123_456, "percentunit", "12.3 %"),
            (0.0, "percentunit", "0 %"),
            (0.0123, "s", "12.3 ms"),
            (90.04, "s", "90 s"),
            (600.0, "s", "10 min"),
            (2048.0, "bytes", "2 KiB"),
            (3.0 * 1024.0 * 1024.0, "Bps", "3 MiB/s"),
            (0.5, "cps", "0.5/s"),
            (f64::NAN, "s", "–"),
            (61_000.0, "dateTimeAsIso", "00:01:01"),
        ];
        for (value, unit, wanted) in cases {
            assert_eq!(shown(value, unit), wanted, "{value} {unit}");
        }
    }
}
