//! `spec.deadline` as a rule, and the instant that it gives.

use std::sync::Arc;

use shed_core::time::{Instant, Span};

use crate::api::{
    ANNOTATION_WORKFLOW_DEADLINE, ClockDeadline, ClockStart, Deadline, DeadlineJob,
    DeadlineJobSpec, FixedDeadline, HistoryDeadline, Ledger, Quantile,
};
use crate::clock;
use crate::validate::clock_time::{ClockFault, ClockTime};
use crate::validate::{InvalidSpec, RunDeadline, ValidatedJob, Workflow, WorkflowFault, duration};

/// The largest factor of `spec.deadline.history`.
const FACTOR_MAX: u32 = 100;
/// Parts of 1 in which a factor is counted.
const WHOLE: u32 = 1000;

/// The deadline, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadlineRule {
    /// No deadline: a batch/v1 Job that names none.
    Never,
    /// An instant.
    At(Instant),
    /// Counted from creation, or from the time for which a CronJob scheduled the Job.
    FromCreation(Span),
    /// Counted from the first unsuspended pass.
    FromStart(Span),
    /// A time of day. Computed once.
    Clock(ClockTime),
    /// A quantile of earlier completion times, counted from the first unsuspended pass. Computed once.
    History(HistoryRule),
    /// The deadline of the workflow's run, which is computed once, or the job's own one if that is earlier.
    Run(Box<RunRule>),
}

/// The deadline of a stage of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRule {
    run: Arc<str>,
    deadline: RunDeadline,
    /// The job's own rule, which is not computed once.
    own: DeadlineRule,
}

/// What is known besides the ledger of a deadline that is computed once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Learned {
    /// With `deadline.history`, the quantile of the class's completion times, if enough are known.
    pub quantile: Option<Span>,
    /// When the workflow's run began.
    pub run_start: Option<Instant>,
}

/// A quantile of earlier completion times, times a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRule {
    /// The quantile.
    pub quantile: Quantile,
    /// The factor, in thousandths.
    thousandths: u32,
}

impl HistoryRule {
    /// The rule of `spec.deadline.history`; absent if the factor is not a decimal number above 0 and at most 100.
    pub fn new(quantile: Quantile, factor: &str) -> Option<Self> {
        let (whole, parts) = factor.split_once('.').unwrap_or((factor, "0"));
        let is_number = |text: &str| {
            (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(whole) || !is_number(parts) {
            return None;
        }
        let parts: u32 = format!("{parts:0<3}").parse().ok()?;
        let thousandths = whole.parse::<u32>().ok()? * WHOLE + parts;
        (1..=FACTOR_MAX * WHOLE)
            .contains(&thousandths)
            .then_some(Self {
                quantile,
                thousandths,
            })
    }

    /// How long a job may take if the quantile of earlier ones is this.
    pub fn limit(self, quantile: Span) -> Span {
        let product = i128::from(quantile.0) * i128::from(self.thousandths);
        Span(i64::try_from(product / i128::from(WHOLE)).unwrap_or(i64::MAX))
    }

    fn text(self) -> String {
        let factor = f64::from(self.thousandths) / f64::from(WHOLE);
        format!("history({})*{factor}", self.quantile)
    }
}

impl DeadlineRule {
    /// Whether the job has no deadline, or none yet that is known to come.
    pub fn gives_none(&self, deadline: Option<Instant>) -> bool {
        match self {
            Self::Never => true,
            Self::History(_) => deadline.is_none(),
            Self::At(_)
            | Self::FromCreation(_)
            | Self::FromStart(_)
            | Self::Clock(_)
            | Self::Run(_) => false,
        }
    }

    /// This rule for a stage of a run.
    pub fn within(self, workflow: Option<&Workflow>) -> Result<Self, InvalidSpec> {
        let due = workflow.and_then(|run| Some((&run.run, run.deadline.clone()?)));
        let Some((run, deadline)) = due else {
            return Ok(self);
        };
        if matches!(self, Self::History(_)) {
            let problem = "does not work with a deadline from history, because shed learns the part of each stage \
                           itself: remove one of them";
            return Err(InvalidSpec::Workflow(WorkflowFault {
                key: ANNOTATION_WORKFLOW_DEADLINE,
                problem: problem.to_owned(),
            }));
        }
        Ok(Self::Run(Box::new(RunRule {
            run: Arc::clone(run),
            deadline,
            own: self,
        })))
    }

    /// The deadline as an instant; absent while its clock has not started. `from` is the job's creation, or the
    /// time for which a CronJob scheduled it.
    pub fn instant(&self, from: Instant, ledger: &Ledger) -> Option<Instant> {
        let fixed = self.fixed(ledger);
        let computed = || self.computed(from, ledger.first_pass);
        match self {
            Self::Run(_) => fixed.into_iter().chain(computed()).min(),
            _ => fixed.or_else(computed),
        }
    }

    /// The same of a job without a ledger, from its start. Absent for a deadline from history, which is computed once; of
    /// a stage of a workflow the job's own one.
    pub fn computed(&self, from: Instant, start: Option<Instant>) -> Option<Instant> {
        match self {
            Self::Never | Self::History(_) => None,
            Self::At(instant) => Some(*instant),
            Self::FromCreation(span) => Some(from.plus(*span)),
            Self::FromStart(span) => start.map(|start| start.plus(*span)),
            Self::Clock(time) => time.next_after(from),
            Self::Run(rule) => rule.own.computed(from, start),
        }
    }

    /// The deadline of the run, if this is that of a stage.
    pub fn of_run(&self, run_start: Instant) -> Option<Instant> {
        match self {
            Self::Run(rule) => rule.deadline.instant(run_start),
            _ => None,
        }
    }

    /// The text under which the ledger has the instant; absent for rules whose instant is not computed once.
    fn text(&self) -> Option<String> {
        match self {
            Self::Clock(time) => Some(time.to_string()),
            Self::History(rule) => Some(rule.text()),
            Self::Run(rule) => Some(format!("workflow({}) {}", rule.run, rule.deadline.text())),
            Self::Never | Self::At(_) | Self::FromCreation(_) | Self::FromStart(_) => None,
        }
    }

    fn fixed(&self, ledger: &Ledger) -> Option<Instant> {
        let fixed = ledger.fixed_deadline.as_ref()?;
        (self.text().as_ref() == Some(&fixed.rule)).then_some(fixed.at)
    }
}

impl ValidatedJob {
    /// The deadline of the job by its ledger; absent while its clock has not started.
    pub fn deadline_by(&self, ledger: &Ledger) -> Option<Instant> {
        self.deadline.instant(self.counts_from, ledger)
    }

    /// The deadline of the run that the job is a stage of, once it is recorded.
    pub fn run_deadline(&self, ledger: &Ledger) -> Option<Instant> {
        match &self.deadline {
            DeadlineRule::Run(_) => self.deadline.fixed(ledger),
            _ => None,
        }
    }

    /// The deadline that the history gives: counted from the first unsuspended pass, as completion times are.
    /// `quantile` is that of the completion times, if enough are known.
    pub fn deadline_by_history(&self, ledger: &Ledger, quantile: Option<Span>) -> Option<Instant> {
        let DeadlineRule::History(rule) = &self.deadline else {
            return None;
        };
        let (start, quantile) = ledger.first_pass.zip(quantile)?;
        Some(start.plus(rule.limit(quantile)))
    }

    /// What the ledger records of a deadline that is computed once. An instant from history that has passed is not
    /// recorded: the job could not be complete by then.
    pub fn fixed_deadline(
        &self,
        ledger: &Ledger,
        learned: Learned,
        now: Instant,
    ) -> Option<FixedDeadline> {
        if self.launches_nothing() {
            return ledger.fixed_deadline.clone();
        }
        let rule = self.deadline.text()?;
        if ledger.ending.is_some() || self.deadline.fixed(ledger).is_some() {
            return ledger.fixed_deadline.clone();
        }
        let at = match &self.deadline {
            DeadlineRule::Clock(_) => self.deadline_by(ledger),
            DeadlineRule::Run(rule) => rule.deadline.instant(learned.run_start?),
            _ => self
                .deadline_by_history(ledger, learned.quantile)
                .filter(|at| *at > now),
        };
        Some(FixedDeadline { rule, at: at? })
    }
}

/// When a job must be complete by its specification and its annotations.
pub fn deadline_rule(job: &DeadlineJob) -> Result<DeadlineRule, InvalidSpec> {
    let workflow = Workflow::read(job.metadata.annotations.as_ref());
    let workflow = workflow.map_err(InvalidSpec::Workflow)?;
    own_rule(&job.spec)?.within(workflow.as_ref())
}

fn own_rule(spec: &DeadlineJobSpec) -> Result<DeadlineRule, InvalidSpec> {
    let Some(deadline) = &spec.deadline else {
        let needed = !spec.is_companion();
        return if needed {
            Err(InvalidSpec::Deadline)
        } else {
            Ok(DeadlineRule::Never)
        };
    };
    rule_of(deadline)
}

/// A deadline as a rule.
pub fn rule_of(deadline: &Deadline) -> Result<DeadlineRule, InvalidSpec> {
    let forms = (
        &deadline.within,
        &deadline.at,
        &deadline.clock,
        &deadline.history,
    );
    match forms {
        (Some(text), None, None, None) => within(text, deadline.clock_start),
        (None, Some(at), None, None) => Ok(DeadlineRule::At(clock::instant(at))),
        (None, None, Some(time), None) => clock_rule(time),
        (None, None, None, Some(history)) => history_rule(history),
        _ => Err(InvalidSpec::Deadline),
    }
}

fn within(text: &str, start: ClockStart) -> Result<DeadlineRule, InvalidSpec> {
    let error = || InvalidSpec::Within {
        text: text.to_owned(),
    };
    let span = duration(text).ok_or_else(error)?;
    Ok(match start {
        ClockStart::Creation => DeadlineRule::FromCreation(span),
        ClockStart::Start => DeadlineRule::FromStart(span),
    })
}

fn clock_rule(deadline: &ClockDeadline) -> Result<DeadlineRule, InvalidSpec> {
    let ClockDeadline { time, time_zone } = deadline;
    let rule = ClockTime::new(time, time_zone).map_err(|fault| match fault {
        ClockFault::Time => InvalidSpec::ClockTime { text: time.clone() },
        ClockFault::TimeZone => InvalidSpec::TimeZone {
            text: time_zone.clone(),
        },
    });
    rule.map(DeadlineRule::Clock)
}

fn history_rule(deadline: &HistoryDeadline) -> Result<DeadlineRule, InvalidSpec> {
    let error = || InvalidSpec::Factor {
        text: deadline.factor.clone(),
    };
    let rule = HistoryRule::new(deadline.quantile, &deadline.factor).ok_or_else(error)?;
    Ok(DeadlineRule::History(rule))
}

#[cfg(test)]
mod tests;
