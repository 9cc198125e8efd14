//! Metrics of progress polls.

use prometheus::{Gauge, Histogram, IntCounter, Result, exponential_buckets};
use shed_agent::ReportError;

use crate::registrar::{Counters, Registrar};

const REPORT_FAULTS: [ReportError; 10] = [
    ReportError::TooLarge,
    ReportError::NotUtf8,
    ReportError::NotANumber,
    ReportError::NotFinite,
    ReportError::OutOfRange,
    ReportError::ZeroTotal,
    ReportError::CheckpointTooLong,
    ReportError::BadJson,
    ReportError::Ambiguous,
    ReportError::Unreadable,
];

/// Metrics of progress polls.
pub struct ProgressMetrics {
    /// Progress reports that were refused, by reason.
    pub refused: Counters<1>,
    /// Progress polls.
    pub polls: IntCounter,
    /// Time of one poll.
    pub poll_seconds: Histogram,
    /// Longest delay of a due progress poll.
    pub delay: Gauge,
    /// Progress polls without a valid response.
    pub failures: IntCounter,
}

impl ProgressMetrics {
    /// Registers everything; the series of known reasons start at 0.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let metrics = Self {
            refused: registrar.counters(
                "shed_progress_reports_refused_total",
                "Invalid progress reports, by reason",
                ["reason"],
            )?,
            polls: registrar.counter("shed_progress_polls_total", "Progress polls")?,
            poll_seconds: registrar.histogram(
                "shed_progress_poll_duration_seconds",
                "Duration of progress polls, those without a response included",
                // 0.5 ms to about 1 s.
                &exponential_buckets(0.0005, 2.0, 12)?,
            )?,
            delay: registrar.gauge(
                "shed_progress_poll_delay_seconds",
                "Longest delay of a due progress poll that waits for the poll budget",
            )?,
            failures: registrar.counter(
                "shed_progress_poll_failures_total",
                "Progress polls without a valid response",
            )?,
        };
        for fault in REPORT_FAULTS {
            let _ = metrics.refused.with([fault.label()]);
        }
        Ok(metrics)
    }
}
