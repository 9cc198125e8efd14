//! Mantri (spec 8, section 10 of DollyMP). When slots are idle, a task gets one more attempt if
//! that probably saves machine time: P(t_rem > (c+1)/c·t_new) > δ with c attempts running. Every
//! few minutes only the best attempt of a task is kept. It ignores deadlines, and its clones start
//! from zero.
//!
//! While tasks wait for slots Mantri also kills a task's only attempt and starts the task again, if
//! t_rem > E(t_new) + Δ, at most γ times. That is `restarts=γ`. It is off by default, as in the
//! specification, because one prediction then discards all work of the attempt since its last
//! checkpoint. The slot is free only when the attempt is gone, and then the task waits for a slot
//! like any first attempt: another job may be served before it. Mantri's own paper is not among
//! those at hand; the rule is that of the specification, which gives no γ.

use crate::formulas::mantri::{self, pays_blind, pays_blind_at_most, pays_known};
use crate::given_distribution::GivenDistribution;
use crate::prune_due::prune_due;
use crate::state::Looked;
use shed_core::estimate::distribution::AttemptDistribution;
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, MODES};
use shed_core::round::{AttemptEstimate, JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::snapshot::SpeculationMode;
use shed_core::time::Span;

/// The parameters of Mantri.
#[derive(Debug, Clone, PartialEq)]
pub struct Mantri {
    /// δ: the probability that has to be exceeded.
    pub delta: f64,
    /// Maximum number of clones of a task: 3 extra attempts in spec 8, 3 attempts in total in the
    /// closed form's vectors.
    pub max_clones: u32,
    /// Whether tasks that report nothing are judged by their age.
    pub silent: bool,
    /// From look to look.
    pub interval: Span,
    /// Time after which only the best attempt of a task is kept; 0: never.
    pub keep_interval: Span,
    /// γ: how often a task's only attempt is given up for a new one; 0: never.
    pub restarts: u32,
    /// Δ: by how much longer than a new attempt the given-up one must still need.
    pub restart_gain: Span,
    /// The distribution, if it is given.
    pub distribution: GivenDistribution,
}

impl Default for Mantri {
    fn default() -> Self {
        Self {
            delta: 0.25,
            max_clones: 3,
            silent: true,
            interval: Span::from_seconds(3),
            keep_interval: Span::from_seconds(180),
            restarts: 0,
            restart_gain: Span::from_seconds(30),
            distribution: GivenDistribution::default(),
        }
    }
}

impl PolicyRule for Mantri {
    type Belief = ();
    type State = Looked;
    type Place = ();

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
            Setting::whole("restarts", &mut self.restarts, 0, 20),
            Setting::seconds("restart_gain", &mut self.restart_gain, 0.0, 86400.0),
        ];
        settings.extend(self.distribution.settings());
        settings
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn restarts(&self) -> bool {
        self.restarts > 0
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>) -> Judgement<()> {
        Judgement::every(self.interval, job, recall)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        if self.keep_interval <= Span(0) {
            return;
        }
        let now = desk.now();
        let is_due = |job: &JobView<'_>, state: &Looked| {
            let last = state.pruned.unwrap_or(job.job.submitted);
            last.plus(self.keep_interval) <= now
        };
        prune_due(desk, is_due, |state| &mut state.pruned);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        if self.restarts > 0 && desk.jobs().iter().any(JobView::waits_for_capacity) {
            self.restart(desk);
        }
        for mode in MODES {
            self.duplicate(desk, mode);
        }
    }
}

impl Mantri {
    /// Gives up attempts while tasks wait for slots.
    fn restart(&self, desk: &mut Desk<'_, '_, Self>) {
        for position in desk.by_submission() {
            let Some(state) = desk.jobs().get(position) else {
                continue;
            };
            let may = state.draft.optimized
                && state.job.rules.speculation == SpeculationMode::Enabled
                && !state.is_held_up(desk.now());
            if !may {
                continue;
            }
            let Some(known) = desk.state(position) else {
                continue;
            };
            let tasks = state.estimate.tasks.iter();
            let ends = tasks.filter_map(|task| self.to_restart(state, known, task));
            for id in ends.collect::<Vec<_>>() {
                desk.restart(position, id);
                if let Some(state) = desk.state_mut(position) {
                    *state.restarts.entry(id.0).or_insert(0) += 1;
                }
            }
        }
    }

    /// The task's only attempt, if t_rem > E(t_new) + Δ. A new one begins where the job resumes.
    fn to_restart(
        &self,
        state: &JobView<'_>,
        known: &Looked,
        task: &TaskEstimate,
    ) -> Option<(TaskIndex, AttemptNumber)> {
        let index = task.index;
        let [attempt] = &*task.attempts else {
            return None;
        };
        let before = known.restarts.get(&index).copied().unwrap_or(0);
        let mut facts = state.job.task(index)?.attempts.iter();
        let seen = facts.find(|a| a.number == attempt.number)?;
        let has_advanced = seen.progress?.last > seen.start_progress;
        if before >= self.restarts || !has_advanced {
            return None;
        }
        let begin = task.begin();
        let fresh = (1.0 - begin) * self.distribution.of(state)?.mean();
        let is_worse = attempt.remaining? > fresh + self.restart_gain.seconds();
        is_worse.then_some((index, attempt.number))
    }

    fn duplicate(&self, desk: &mut Desk<'_, '_, Self>, mode: SpeculationMode) {
        let ask = Ask::blind(self.max_clones);
        let mut jobs = desk.clone_jobs(mode, ask, |_, state, task| {
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
            let probability = desk
                .jobs()
                .get(job.position)
                .and_then(|state| self.probability(state, state.estimate.running(index?)?));
            if let Some(probability) = probability {
                let finding = Finding::Saves { probability };
                desk.request(job, task, finding);
            }
        }
        for job in &mut jobs {
            desk.refuse_rest(job, RefusalReason::Capacity);
        }
    }

    /// That one more attempt pays, if that is above δ. While a clone of the task is silent its
    /// outcome is not known, and no other is launched.
    fn probability(&self, state: &JobView<'_>, task: &TaskEstimate) -> Option<f64> {
        let distribution = self.distribution.of(state)?;
        let copies = task.attempts.len() as u32;
        let goes = |a: &AttemptEstimate| state.is_stopped((task.index, a.number));
        if task.attempts.iter().all(goes) {
            return None;
        }
        let rule = mantri::Mantri {
            delta: self.delta,
            copies_max: self.max_clones.saturating_add(1),
        };
        let probability = match task.kept() {
            Some(kept) if task.attempts.iter().all(|a| a.reports()) => {
                pays_known(&distribution, kept.remaining?, copies)
            }
            None if self.silent && copies == 1 => {
                let age = task.attempts.first()?.age.max(0.0);
                if !rule.duplicates(pays_blind_at_most(&distribution, age, copies), copies) {
                    return None;
                }
                pays_blind(&distribution, age, copies)
            }
            _ => return None,
        };
        rule.duplicates(probability, copies).then_some(probability)
    }
}
