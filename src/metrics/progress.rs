//! Metrics of progress polls.

use prometheus::{Gauge, Histogram, IntCounter, exponential_buckets};
use shed_agent::ReportError;

use crate::registrar::{Counters, metrics};

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

metrics! {
    /// Metrics of progress polls.
    pub struct ProgressMetrics {
        pub refused: Counters<1> = "shed_progress_reports_refused_total",
            "Invalid progress reports, by reason", ["reason"];
        pub polls: IntCounter = "shed_progress_polls_total",
            "Progress polls";
        // 0.5 ms to about 1 s.
        pub poll_seconds: Histogram = "shed_progress_poll_duration_seconds",
            "Duration of progress polls, those without a response included", exponential_buckets(0.0005, 2.0, 12)?;
        pub delay: Gauge = "shed_progress_poll_delay_seconds",
            "Longest delay of a due progress poll that waits for the poll budget";
        pub failures: IntCounter = "shed_progress_poll_failures_total",
            "Progress polls without a valid response";
    } => Self::show_zeros
}

impl ProgressMetrics {
    fn show_zeros(&self) {
        for fault in REPORT_FAULTS {
            let _ = self.refused.with([fault.label()]);
        }
    }
}
