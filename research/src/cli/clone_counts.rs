//! What clones cost and gain, summed over the runs of one policy.

use shed_sim::outcome::Figures;

/// Sums over runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CloneCounts {
    /// Runs.
    pub(super) runs: usize,
    /// Tasks with a winner.
    pub(super) tasks: f64,
    /// Clones launched.
    pub(super) clones: f64,
    /// Tasks that a clone won.
    pub(super) wins: f64,
    /// Time for which attempts held a slot.
    pub(super) slot_seconds: f64,
    /// The part of it that was not a winner's.
    pub(super) lost_slot_seconds: f64,
}

impl CloneCounts {
    /// The sums of these runs.
    pub(super) fn of<'a>(runs: impl IntoIterator<Item = &'a Figures>) -> Self {
        let mut counts = Self::default();
        for figures in runs {
            counts.runs += 1;
            counts.tasks += figures.tasks as f64;
            counts.clones += figures.clones as f64;
            counts.wins += figures.clone_wins as f64;
            counts.slot_seconds += figures.machine_seconds;
            counts.lost_slot_seconds += figures.machine_seconds_wasted;
        }
        counts
    }

    /// Clones per task with a winner; absent if no task has one.
    pub(super) fn per_task(&self) -> Option<f64> {
        (self.tasks > 0.0).then(|| self.clones / self.tasks)
    }

    /// Clones per task that a clone won; absent if a clone won none.
    pub(super) fn per_win(&self) -> Option<f64> {
        (self.wins > 0.0).then(|| self.clones / self.wins)
    }

    /// Slot-seconds of all attempts, per run.
    pub(super) fn slot_seconds_per_run(&self) -> f64 {
        self.slot_seconds / self.runs as f64
    }

    /// Slot-seconds of attempts that did not win, per run.
    pub(super) fn lost_per_run(&self) -> f64 {
        self.lost_slot_seconds / self.runs as f64
    }

    /// Share of the slot-seconds of attempts that did not win; absent if no attempt held a slot.
    pub(super) fn lost_share(&self) -> Option<f64> {
        (self.slot_seconds > 0.0).then(|| self.lost_slot_seconds / self.slot_seconds)
    }
}

/// A number with that many digits, or a dash.
pub(super) fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_sums_and_absent_without_a_divisor() {
        let counts = CloneCounts {
            runs: 2,
            tasks: 40.0,
            clones: 10.0,
            wins: 4.0,
            slot_seconds: 200.0,
            lost_slot_seconds: 50.0,
        };
        assert_eq!(counts.per_task(), Some(0.25));
        assert_eq!(counts.per_win(), Some(2.5));
        assert_eq!(counts.lost_share(), Some(0.25));
        assert_eq!(counts.lost_per_run(), 25.0);
        let none = CloneCounts::default();
        assert_eq!(
            (none.per_task(), none.per_win(), none.lost_share()),
            (None, None, None)
        );
        assert_eq!(or_dash(none.per_win(), 1), "–");
        assert_eq!(or_dash(counts.per_win(), 1), "2.5");
    }
}
