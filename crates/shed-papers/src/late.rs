//! LATE, longest approximate time to end (spec 8). Of the tasks whose progress rate is among the
//! lowest of their job, the one that needs longest gets a clone on a fast node, while few attempts
//! are clones. It ignores deadlines, and its clones start from zero.

use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, MODES};
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::snapshot::SpeculationMode;
use shed_core::time::Span;

/// The parameters of LATE.
#[derive(Debug, Clone, PartialEq)]
pub struct Late {
    /// SpeculativeCap: the share of all slots that clones may hold.
    pub cap: f64,
    /// SlowTaskThreshold: the quantile of the job's progress rates below which a task is slow.
    pub slow_task: f64,
    /// From look to look.
    pub interval: Span,
}

impl Default for Late {
    fn default() -> Self {
        Self {
            cap: 0.1,
            slow_task: 0.25,
            interval: Span::from_seconds(3),
        }
    }
}

impl PolicyRule for Late {
    type Belief = ();
    type State = ();
    type Place = ();

    fn name(&self) -> &'static str {
        "late"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::number("cap", &mut self.cap, 0.0, 1.0),
            Setting::number("slow_task", &mut self.slow_task, 0.0, 1.0),
            Setting::seconds("interval", &mut self.interval, 0.1, 3600.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        1
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>) -> Judgement<()> {
        Judgement::every(self.interval, job, recall)
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        for mode in MODES {
            self.speculate(desk, mode);
        }
    }
}

impl Late {
    fn speculate(&self, desk: &mut Desk<'_, '_, Self>, mode: SpeculationMode) {
        let ask = Ask {
            fast_nodes_only: true,
            ..Ask::blind(1)
        };
        let thresholds: Vec<Option<f64>> = desk
            .jobs()
            .iter()
            .map(|state| self.threshold(state))
            .collect();
        let mut jobs = desk.clone_jobs(mode, ask, |position, _, task| {
            let threshold = thresholds.get(position).copied().flatten();
            task.attempts.len() == 1
                && matches!((rate(task), threshold), (Some(rate), Some(slow)) if rate < slow)
        });
        let mut ranked = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            let tasks = job.tasks.iter().enumerate();
            ranked.extend(tasks.filter_map(|(task, t)| Some((t.remaining?, at, task))));
        }
        // Stable: of equals the earliest job's lowest index is first.
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut running: usize = desk.jobs().iter().map(JobView::clones_alive).sum();
        for (remaining, at, task) in ranked {
            let Some(job) = jobs.get_mut(at) else {
                continue;
            };
            let slots = f64::from(desk.capacity().times_usable(job.position));
            if running as f64 >= self.cap * slots {
                desk.refuse_rest(job, RefusalReason::Budget);
                continue;
            }
            let state = desk.jobs().get(job.position);
            let mean = state.and_then(|state| state.estimate.mean_run);
            let seconds = remaining - mean.unwrap_or(0.0);
            let finding = Finding::EndsLater { seconds };
            running += usize::from(desk.request(job, task, finding));
        }
    }

    /// The rate below which a task of the job is slow.
    fn threshold(&self, state: &JobView<'_>) -> Option<f64> {
        let mut rates: Vec<f64> = state.estimate.tasks.iter().filter_map(rate).collect();
        rates.sort_by(f64::total_cmp);
        let at = (self.slow_task * rates.len() as f64) as usize;
        rates.get(at.min(rates.len().saturating_sub(1))).copied()
    }
}

/// Progress per second of the task's best attempt, counted from where it began.
fn rate(task: &TaskEstimate) -> Option<f64> {
    task.kept()?.total.map(|total| 1.0 / total)
}
