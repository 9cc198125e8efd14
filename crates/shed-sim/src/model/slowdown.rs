//! The slowness of machines, from `azure_vm_slowdown`. Real: the quantiles of (median / value) of each benchmark on
//! each kind of machine. Sampled: once per node, the benchmark that it resembles; after each exponentially
//! distributed time, its slowness, independent of the previous ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use shed_core::time::Span;

use crate::random::{Purpose, Stream};
use crate::trace::table::Table;
use shed_record::InputError;

/// The most states of a node within one task; the rest of the task then runs at full speed.
const STATES_MAX: u64 = 10_000;

/// (Quantile, slowdown), ascending.
type Curve = Vec<(f64, f64)>;

/// A process that changes the speed of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdowns {
    curves: Arc<Vec<Curve>>,
    /// Mean time between two changes of a node.
    period: Span,
}

impl Slowdowns {
    /// Reads the file.
    pub fn read(path: &Path, period: Span) -> Result<Self, InputError> {
        let mut table = Table::open(path)?;
        let names = ["suite", "test", "vm_sku", "lifespan", "region"];
        let series = names.map(|name| table.column(name));
        let (quantile, slowdown) = (
            table.column("quantile")?,
            table.column("slowdown_vs_median")?,
        );
        let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
        while table.next()? {
            let mut key = String::new();
            for column in &series {
                let column = column.as_ref().map_err(Clone::clone)?;
                key.push_str(table.text(*column)?);
                key.push(',');
            }
            let point = (
                table.number(quantile, 0.0, 1.0)?,
                table.number(slowdown, 0.01, 1000.0)?,
            );
            curves.entry(key).or_default().push(point);
        }
        for curve in curves.values_mut() {
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        if curves.is_empty() {
            let message = "holds no quantile; at least one line below the header is expected";
            return Err(InputError::of_file(path, message));
        }
        Ok(Self {
            curves: Arc::new(curves.into_values().collect()),
            period,
        })
    }

    /// Every node is slow in this share of its states, by a factor that is uniform in `low..high`.
    pub fn of_states(share: f64, [low, high]: [f64; 2], period: Span) -> Self {
        let healthy = 1.0 - share;
        let curve = vec![(0.0, 1.0), (healthy, 1.0), (healthy, low), (1.0, high)];
        Self {
            curves: Arc::new(vec![curve]),
            period,
        }
    }

    /// The speed that a node has after its `change`-th change, and for how long.
    pub fn draw(&self, seed: u64, node: u32, change: u64) -> (f64, Span) {
        let like = Stream::new(seed, Purpose::Node, [u64::from(node), 0, 0]);
        let curve = &self.curves[{ like }.index(self.curves.len())];
        let mut stream = Stream::new(seed, Purpose::Node, [u64::from(node), 1, change]);
        let speed = 1.0 / at_quantile(curve, stream.unit());
        let seconds = stream.exponential(self.period.seconds());
        (speed, Span::from_seconds_f64(seconds).max(Span(1)))
    }
}

impl Slowdowns {
    /// The smallest factor by which a node is ever slow; below 1 a node can be faster than others.
    pub fn least(&self) -> f64 {
        let points = self.curves.iter().flatten();
        points
            .map(|(_, slowdown)| *slowdown)
            .fold(f64::INFINITY, f64::min)
    }

    /// The time that this work takes on that node, from its first state on.
    pub fn taken(&self, seed: u64, node: u32, work: Span) -> Span {
        let (mut left, mut taken) = (work.0 as f64, 0.0);
        for change in 0..STATES_MAX {
            let (speed, lasts) = self.draw(seed, node, change);
            let done = lasts.0 as f64 * speed;
            if done >= left {
                return Span((taken + left / speed).round() as i64);
            }
            left -= done;
            taken += lasts.0 as f64;
        }
        Span((taken + left) as i64)
    }
}

/// Linear between the known points, flat outside.
fn at_quantile(curve: &[(f64, f64)], quantile: f64) -> f64 {
    let above = curve.partition_point(|point| point.0 < quantile);
    match (curve.get(above.wrapping_sub(1)), curve.get(above)) {
        (Some(low), Some(high)) => {
            let share = (quantile - low.0) / (high.0 - low.0);
            low.1 + share * (high.1 - low.1)
        }
        (Some(last), None) => last.1,
        (None, Some(first)) => first.1,
        (None, None) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_states_is_slow_by_a_factor_of_the_range() {
        let states = Slowdowns::of_states(0.2, [2.6, 12.0], Span::from_seconds(600));
        let speeds = (0..10_000).map(|change| states.draw(1, 0, change).0);
        let slow: Vec<f64> = speeds.filter(|&speed| speed < 1.0).collect();
        assert!(
            (slow.len() as f64 / 10_000.0 - 0.2).abs() < 0.02,
            "{}",
            slow.len()
        );
        assert!(
            slow.iter()
                .all(|&speed| (1.0 / 12.0..=1.0 / 2.6).contains(&speed))
        );
    }

    #[test]
    fn a_quantile_between_two_points_lies_on_their_line() {
        let curve = [(0.0, 0.9), (0.5, 1.0), (1.0, 3.0)];
        assert_eq!(at_quantile(&curve, 0.25), 0.95);
        assert_eq!(at_quantile(&curve, 0.75), 2.0);
        assert_eq!(at_quantile(&curve[1..], 0.2), 1.0);
    }
}
