//! S-Resume on events, a simple baseline rule. After each event, each late task gets as many clones
//! as lower its probability of a miss below a target. They begin at the best checkpoint if the job
//! resumes. Once all its attempts are seen, the one with the earliest predicted end is kept. The
//! original continues. No optimizer compares tasks with each other.

use shed_core::plan::Finding;
use shed_core::policy::prune::{self, GRACE_MIN, is_seen, start_up};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::round::clones::{Ask, CloneJob, MODES};
use shed_core::settings::Setting;
use shed_core::time::Span;

/// The parameters of the rule.
#[derive(Debug, Clone, PartialEq)]
pub struct SResumeEvent {
    /// The probability of a miss that a late task is brought under.
    pub miss_target: f64,
    /// Most clones of a task at a time.
    pub max_clones: u32,
    /// Time between two checks, because reports of progress trigger none.
    pub interval: Span,
}

impl Default for SResumeEvent {
    fn default() -> Self {
        Self {
            miss_target: 0.01,
            max_clones: 5,
            interval: Span::from_seconds(3),
        }
    }
}

impl PolicyRule for SResumeEvent {
    type Belief = ();
    type State = ();
    type Place = ();

    fn name(&self) -> &'static str {
        "s-resume-event"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::number("miss_target", &mut self.miss_target, 1e-9, 1.0),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::seconds("interval", &mut self.interval, 0.1, 3600.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>) -> Judgement<()> {
        Judgement::every(self.interval, job, recall)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        prune::prune(desk, |rivals| {
            let grace = start_up(rivals.state, GRACE_MIN);
            let attempts = rivals.task.attempts.iter();
            attempts.into_iter().all(|attempt| is_seen(attempt, grace))
        });
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        for mode in MODES {
            let jobs = desk.clone_jobs(mode, Ask::aware(self.max_clones), |_, state, task| {
                state.stragglers.binary_search(&task.index).is_ok()
            });
            for mut job in jobs {
                self.rescue(desk, &mut job);
            }
        }
    }
}

impl SResumeEvent {
    fn rescue(&self, desk: &mut Desk<'_, '_, Self>, job: &mut CloneJob) {
        let ln_target = libm::log(self.miss_target);
        for at in 0..job.tasks.len() {
            while let Some(task) = job.tasks.get(at) {
                let may_have = task.clones_alive + task.clones < job.max_clones;
                if !may_have || task.ln_miss <= ln_target {
                    break;
                }
                let miss = libm::exp(task.ln_miss);
                let finding = Finding::Late { miss };
                if !desk.request(job, at, finding) {
                    break;
                }
            }
        }
    }
}
