//! DollyMP ([D] Algorithm 2) for clones. Capacity that fits no first attempt goes to second copies
//! of tasks, then to third ones. The order is by the jobs' levels (Algorithm 1) and within a level
//! by the fit of a job to the free capacity. It ignores deadlines, and its clones start from zero;
//! the first to end wins. With `order=dollymp` first attempts use the same levels.
//!
//! The paper matches tasks with servers one by one, and so does `order=dollymp`. Clones name no
//! node, and their fit is the fit to the whole cluster.

use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::round::clones::{Ask, CloneJob, MODES};
use shed_core::settings::Setting;
use shed_core::snapshot::SpeculationMode;
use shed_core::time::Span;

/// The parameters of DollyMP.
#[derive(Debug, Clone, PartialEq)]
pub struct DollyMp {
    /// K: the most clones of a task, its first attempt not counted.
    pub max_clones: u32,
    /// ρ: the weight of the standard deviation in a job's effective time.
    pub rho: f64,
    /// The unit of times in levels.
    pub slot: Span,
    /// The share of the cluster that clones may hold, each counted with its dominant share; 1: as
    /// in the algorithm, which has no such bound.
    pub clone_budget: f64,
}

impl Default for DollyMp {
    fn default() -> Self {
        Self {
            max_clones: 2,
            rho: 1.5,
            slot: Span::from_seconds(5),
            clone_budget: 1.0,
        }
    }
}

/// Time until the next check, because capacity may become free without any event of a job.
const LOOK: Span = Span::from_seconds(3);

impl PolicyRule for DollyMp {
    type Belief = ();
    type State = ();
    type Place = ();

    fn name(&self) -> &'static str {
        "dollymp"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::number("rho", &mut self.rho, 0.0, 100.0),
            Setting::seconds("slot", &mut self.slot, 0.001, 86400.0),
            Setting::number("clone_budget", &mut self.clone_budget, 0.0, 1.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>) -> Judgement<()> {
        Judgement::every(LOOK, job, recall)
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let levels = desk.levels(self.rho, self.slot);
        let mut held: f64 = 0.0;
        for (position, state) in desk.jobs().iter().enumerate() {
            let clones = state.clones_alive();
            if clones > 0 {
                held += clones as f64 * desk.capacity().dominant_share(position);
            }
        }
        for mode in MODES {
            let mut jobs = self.ranked(desk, mode, &levels);
            for copies in 1..=self.max_clones {
                for job in &mut jobs {
                    held = self.clone_level(desk, job, copies, held);
                }
            }
            for job in &mut jobs {
                desk.refuse_rest(job, RefusalReason::Capacity);
            }
        }
    }
}

impl DollyMp {
    /// The jobs with tasks that may have a clone, the one to be served first first.
    fn ranked(
        &self,
        desk: &mut Desk<'_, '_, Self>,
        mode: SpeculationMode,
        levels: &[u32],
    ) -> Vec<CloneJob> {
        let ask = Ask::blind(self.max_clones);
        let mut jobs = desk.clone_jobs(mode, ask, |_, _, task| {
            task.attempts.len() <= self.max_clones as usize
        });
        for position in desk.by_submission() {
            jobs.extend(desk.clone_job_of_started(position, mode, ask));
        }
        let rank = |job: &CloneJob| {
            let level = levels.get(job.position).copied().unwrap_or(u32::MAX);
            (level, desk.capacity().alignment(job.position))
        };
        let name = |job: &CloneJob| {
            let state = desk.jobs().get(job.position);
            state.map(|JobView { job, .. }| (job.submitted, &job.key))
        };
        jobs.sort_by(|a, b| {
            let ((level_a, fit_a), (level_b, fit_b)) = (rank(a), rank(b));
            let by_level = level_a.cmp(&level_b);
            let by_fit = by_level.then(fit_b.total_cmp(&fit_a));
            by_fit.then_with(|| name(a).cmp(&name(b)))
        });
        jobs
    }

    /// One more copy for each task of the job whose tasks have `copies` copies. Returns the
    /// capacity that clones hold afterwards.
    fn clone_level(
        &self,
        desk: &mut Desk<'_, '_, Self>,
        job: &mut CloneJob,
        copies: u32,
        mut held: f64,
    ) -> f64 {
        let share = desk.capacity().dominant_share(job.position);
        for at in 0..job.tasks.len() {
            let has_so_many = job
                .tasks
                .get(at)
                .is_some_and(|task| task.copies() == copies);
            if !has_so_many || copies > job.max_clones {
                continue;
            }
            if held + share > self.clone_budget {
                desk.refuse_rest(job, RefusalReason::Budget);
                break;
            }
            let finding = Finding::Copies { copies: copies + 1 };
            if desk.request(job, at, finding) {
                held += share;
            }
        }
        held
    }
}
