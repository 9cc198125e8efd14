//! Mantri (spec 8, section 10 of DollyMP): when slots are idle, a task gets one more attempt if
//! that probably saves machine time, P(t_rem > (c+1)/c·t_new) > δ with c attempts running; every
//! few minutes only the best attempt of a task is kept. It knows no deadline, and its clones start
//! from zero. Its kill-and-restart is left out.

use crate::decide::{JobState, Pass, TaskEstimate};
use crate::formulas::mantri::{self, pays_blind, pays_known};
use crate::plan::{Finding, RefusalReason};
use crate::policy::Speculate;
use crate::policy::clones::{Ask, MODES, by_rule, clone_jobs, grant};
use crate::policy::given::GivenLaw;
use crate::policy::keep;
use crate::policy::params::Setting;
use crate::policy::trigger::in_every_pass;
use crate::snapshot::SpeculationMode;
use crate::time::Span;

/// The parameters of Mantri.
#[derive(Debug, Clone, PartialEq)]
pub struct Mantri {
    /// δ: the probability that has to be exceeded.
    pub delta: f64,
    /// Most clones of a task: spec 8 says 3 extra attempts, the closed form's vectors 3 in all.
    pub max_clones: u32,
    /// Whether tasks that report nothing are judged by their age.
    pub silent: bool,
    /// From look to look.
    pub interval: Span,
    /// After so long only the best attempt of a task is kept; 0: never.
    pub keep_interval: Span,
    /// The law, if it is given.
    pub law: GivenLaw,
}

impl Default for Mantri {
    fn default() -> Self {
        Self {
            delta: 0.25,
            max_clones: 3,
            silent: true,
            interval: Span::from_seconds(3),
            keep_interval: Span::from_seconds(180),
            law: GivenLaw::default(),
        }
    }
}

impl Speculate for Mantri {
    fn name(&self) -> &'static str {
        "mantri"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        let mut settings = vec![
            Setting::number("delta", &mut self.delta, 0.0, 1.0),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::switch("silent", &mut self.silent),
            Setting::seconds("interval", &mut self.interval, 0.1, 3600.0),
            Setting::seconds("keep_interval", &mut self.keep_interval, 0.0, 86400.0),
        ];
        settings.extend(self.law.settings());
        settings
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn before_admission(&self, pass: &mut Pass<'_>) {
        in_every_pass(pass, self.interval);
        if self.keep_interval <= Span(0) {
            return;
        }
        let now = pass.snapshot.now;
        let is_due = |state: &JobState<'_>| {
            let last = state.remembered.pruned.unwrap_or(state.job.submitted);
            last.plus(self.keep_interval) <= now
        };
        keep::prune(pass, |rivals| is_due(rivals.state));
        for state in pass.jobs.iter_mut().filter(|state| state.optimized) {
            if is_due(state) {
                state.remembered.pruned = Some(now);
            }
        }
    }

    fn after_admission(&self, pass: &mut Pass<'_>) {
        for mode in MODES {
            self.duplicate(pass, mode);
        }
    }
}

impl Mantri {
    fn duplicate(&self, pass: &mut Pass<'_>, mode: SpeculationMode) {
        let ask = Ask::blind(self.max_clones);
        let mut jobs = clone_jobs(pass, mode, ask, |_, state, task| {
            self.probability(state, task).is_some()
        });
        let mut ranked = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            let tasks = job.tasks.iter().enumerate();
            ranked.extend(tasks.map(|(task, t)| (t.remaining.unwrap_or(0.0), at, task)));
        }
        // Stable: of equals the earliest job's lowest index is first.
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, at, task) in ranked {
            let Some(job) = jobs.get_mut(at) else {
                continue;
            };
            let index = job.tasks.get(task).map(|task| task.index);
            let probability = pass.jobs.get(job.position).and_then(|state| {
                let mut tasks = state.estimate.tasks.iter();
                let estimate = tasks.find(|t| Some(t.task.index) == index)?;
                self.probability(state, estimate)
            });
            if let Some(probability) = probability {
                let finding = Finding::Saves { probability };
                grant(pass, job, task, |odds| by_rule(finding, odds));
            }
        }
        for job in &mut jobs {
            job.refuse_rest(pass, RefusalReason::Capacity);
        }
    }

    /// That one more attempt pays, if that is above δ. While a clone of the task is silent its
    /// outcome is not known, and no other is launched.
    fn probability(&self, state: &JobState<'_>, task: &TaskEstimate<'_>) -> Option<f64> {
        let law = self.law.of(state)?;
        let copies = task.attempts.len() as u32;
        let rule = mantri::Mantri {
            delta: self.delta,
            copies_max: self.max_clones.saturating_add(1),
        };
        let probability = match task.kept() {
            Some(kept) if task.attempts.iter().all(|a| a.reports()) => {
                pays_known(&law, kept.remaining?, copies)
            }
            None if self.silent && copies == 1 => {
                let age = task.attempts.first()?.age.max(0.0);
                pays_blind(&law, age, copies)
            }
            _ => return None,
        };
        rule.duplicates(probability, copies).then_some(probability)
    }
}
