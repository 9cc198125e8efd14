//! How many planning passes an operator has made, read from its metrics again and again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::host_operator::ask;

/// How often it is asked.
const EVERY: Duration = Duration::from_millis(100);
/// One pass is one decision.
const COUNTER: &str = "shed_planning_decision_duration_seconds_count ";

/// A count, which was taken at some moment between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Not before this.
    pub from: Instant,
    /// Not after this.
    pub to: Instant,
    /// Passes since the operator started.
    pub count: u64,
}

/// Counts the passes of one operator.
pub struct Passes {
    samples: Arc<Mutex<Vec<Sample>>>,
    _reader: JoinSet<()>,
}

impl Passes {
    /// Reads the metrics at this address from now on.
    pub fn of(http: SocketAddr) -> Self {
        let samples: Arc<Mutex<Vec<Sample>>> = Arc::default();
        let _reader = JoinSet::from_iter([read(http, Arc::clone(&samples))]);
        Self { samples, _reader }
    }

    /// The samples so far.
    pub fn samples(&self) -> Vec<Sample> {
        self.samples.lock().clone()
    }
}

async fn read(http: SocketAddr, samples: Arc<Mutex<Vec<Sample>>>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let from = Instant::now();
        let page = ask(http, "/metrics").await.unwrap_or_default();
        let Some(count) = count(&page) else {
            continue;
        };
        let sample = Sample {
            from,
            to: Instant::now(),
            count,
        };
        let mut samples = samples.lock();
        samples.push(sample);
    }
}

fn count(page: &str) -> Option<u64> {
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(COUNTER))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_counted_from_the_page_of_metrics() {
        let page = "# TYPE shed_planning_decision_duration_seconds histogram\n\
            shed_planning_decision_duration_seconds_sum 0.2\nshed_planning_decision_duration_seconds_count 41\n";
        assert_eq!(count(page), Some(41));
        assert_eq!(count("HTTP/1.1 503 Service Unavailable"), None);
    }
}
