//! Metrics of progress polls.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{GaugeF64, Why};

/// Metrics of progress polls.
#[derive(Default)]
pub struct ProgressMetrics {
    /// Progress reports that were refused.
    pub refused: Family<Why, Counter>,
    /// Progress polls.
    pub polls: Counter,
    /// Longest delay of a due progress poll.
    pub delay: GaugeF64,
    /// Progress polls without a valid response.
    pub failures: Counter,
}

impl ProgressMetrics {
    /// Registers everything.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "progress_reports_refused",
            "Invalid progress reports, by reason",
            metrics.refused.clone(),
        );
        registry.register("progress_polls", "Progress polls", metrics.polls.clone());
        registry.register(
            "progress_poll_delay_seconds",
            "Longest delay of a due progress poll that waits for the poll budget",
            metrics.delay.clone(),
        );
        registry.register(
            "progress_poll_failures",
            "Progress polls without a valid response",
            metrics.failures.clone(),
        );
        metrics
    }
}
