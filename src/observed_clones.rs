//! What shed would have done for a job that only observes. The clones of a task count once: in the pass that first
//! decides on the task, with the gain, price and cost of that pass. Later passes decide on the task again, and on more
//! clones of it, because none was launched. With a running clone they would rarely do so.

use std::collections::BTreeSet;

use shed_core::ids::TaskIndex;
use shed_core::plan::CloneReport;

use crate::api;

/// The clones that shed would have started for a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedClones {
    /// Those that the last decision would have started.
    pub now: u32,
    /// All of them so far.
    pub total: Figures,
    /// The tasks whose clones have been counted.
    counted: BTreeSet<TaskIndex>,
    /// Whether `counted` lacks those of an earlier process.
    is_restored: bool,
}

/// Figures of clones that were not started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Their number.
    pub clones: u32,
    /// Their expected work in slot-seconds.
    pub slot_seconds: f64,
    /// Their price in expected deadlines; absent for policies without a price.
    pub price: Option<f64>,
    /// By how much they would have raised PoCD.
    pub gain: f64,
}

impl Figures {
    fn add(&mut self, clone: &CloneReport) {
        self.clones = self.clones.saturating_add(1);
        self.slot_seconds += clone.cost_slot_seconds;
        self.gain += clone.pocd_gain;
        if let Some(trade) = &clone.trade {
            self.price = Some(self.price.unwrap_or(0.0) + trade.price);
        }
    }
}

impl ObservedClones {
    /// Continues after a change of the leader. The next decision's clones were counted before, as far as is known.
    pub fn restored(status: &api::ObservedClones) -> Self {
        Self {
            total: Figures {
                clones: u32::try_from(status.total_clones).unwrap_or(0),
                slot_seconds: status.slot_seconds.value(),
                price: status.price.map(api::Decimal::value),
                gain: status.gain.value(),
            },
            is_restored: status.total_clones > 0,
            ..Self::default()
        }
    }

    /// Takes over a decision. Returns the figures of the clones that are new.
    pub fn decide(&mut self, clones: &[CloneReport]) -> Figures {
        self.now = u32::try_from(clones.len()).unwrap_or(u32::MAX);
        let was_restored = std::mem::take(&mut self.is_restored);
        let mut fresh = Figures::default();
        let mut first_decided = BTreeSet::new();
        for clone in clones {
            if self.counted.contains(&clone.task) {
                continue;
            }
            first_decided.insert(clone.task);
            if !was_restored {
                fresh.add(clone);
                self.total.add(clone);
            }
        }
        self.counted.extend(first_decided);
        // A job has one deadline to gain.
        self.total.gain = self.total.gain.min(1.0);
        fresh
    }

    /// As a status has it.
    pub fn status(&self) -> api::ObservedClones {
        let count = |clones: u32| i32::try_from(clones).unwrap_or(i32::MAX);
        api::ObservedClones {
            clones: count(self.now),
            total_clones: count(self.total.clones),
            slot_seconds: api::Decimal::nearest(self.total.slot_seconds),
            price: self.total.price.map(api::Decimal::nearest),
            gain: api::Decimal::nearest(self.total.gain),
        }
    }
}

#[cfg(test)]
mod tests {
    use shed_core::plan::Trade;

    use super::*;

    fn clone(task: u32, pocd_gain: f64, price: Option<f64>) -> CloneReport {
        let trade = price.map(|price| Trade {
            gain: pocd_gain,
            price,
            alternative: None,
        });
        CloneReport {
            task: TaskIndex(task),
            pocd_gain,
            cost_slot_seconds: 40.0,
            trade,
        }
    }

    #[test]
    fn a_task_counts_in_the_first_pass_that_decides_on_it() {
        let mut observed = ObservedClones::default();
        let first = observed.decide(&[clone(3, 0.25, Some(0.02))]);
        assert_eq!((first.clones, first), (1, observed.total));
        // Without a clone the task stays slow, so that later passes want two, and would gain more.
        let later = [clone(3, 0.5, Some(0.02)), clone(3, 0.125, Some(0.02))];
        assert_eq!(observed.decide(&later), Figures::default());
        assert_eq!(observed.status().clones, 2);
        // A task that gets two clones in its first pass counts two.
        let other = [
            clone(3, 0.5, Some(0.02)),
            clone(5, 0.125, Some(0.02)),
            clone(5, 0.125, Some(0.02)),
        ];
        assert_eq!(observed.decide(&other).clones, 2);
        observed.decide(&[]);
        let status = observed.status();
        assert_eq!((status.clones, status.total_clones), (0, 3));
        assert_eq!(status.slot_seconds.to_string(), "120.000");
        assert_eq!(status.price.unwrap().to_string(), "0.060");
        assert_eq!(status.gain.to_string(), "0.500");
    }

    #[test]
    fn a_job_gains_at_most_its_deadline() {
        let mut observed = ObservedClones::default();
        for task in 0..9 {
            observed.decide(&[clone(task, 0.5, None)]);
        }
        assert_eq!(observed.status().gain.to_string(), "1.000");
        assert_eq!(observed.status().price, None);
    }

    #[test]
    fn a_new_leader_counts_no_clone_again() {
        let mut before = ObservedClones::default();
        before.decide(&[clone(3, 0.25, Some(0.02))]);
        let mut after = ObservedClones::restored(&before.status());
        assert_eq!(
            after.decide(&[clone(3, 0.25, Some(0.02))]),
            Figures::default()
        );
        assert_eq!(after.status(), before.status());
        assert_eq!(after.decide(&[clone(4, 0.25, Some(0.02))]).clones, 1);
        // A job without such clones is like a new one.
        let mut fresh = ObservedClones::restored(&ObservedClones::default().status());
        assert_eq!(fresh.decide(&[clone(3, 0.25, None)]).clones, 1);
    }
}
