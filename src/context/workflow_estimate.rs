//! What is estimated of the run of a workflow, from one of its open stages. People read it, and PoCD of the run warns;
//! nothing else is decided by it.

use std::sync::Arc;

use kube::api::ObjectMeta;
use shed_core::estimate::distribution::AttemptDistribution;
use shed_core::estimate::log_normal::LogNormalDistribution;
use shed_core::plan::{EndRange, JobReport};
use shed_core::time::Instant;
use shed_core::workflow::pocd_of_run;

use crate::context::Context;
use crate::job::view::JobView;
use crate::metrics::{JobFigures, RunLabels};
use crate::workflow_runs::{LaterStages, Overruns, SlowStage, StageOfRun};

/// The 90th percentile of the standard normal distribution.
const Z90: f64 = 1.281_551_565_544_600_4;

/// What is estimated of a run with a deadline.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowEstimate {
    /// The run.
    pub labels: RunLabels,
    /// The deadline of the run.
    pub deadline: Instant,
    /// When the stage should be complete so that the later ones have the time that they take, if that is earlier than
    /// the job's deadline.
    pub stage_deadline: Option<Instant>,
    /// What is known of the later stages.
    pub later: LaterStages,
    /// What is known of the times of the stages so far.
    pub overruns: Overruns,
    /// What the last planning pass found.
    pub figures: Option<RunFigures>,
}

/// The figures of a run that change with each planning pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFigures {
    /// Its PoCD.
    pub pocd: Option<f64>,
    /// When it is expected to be complete.
    pub expected_end: Option<Instant>,
    /// The stage that exceeds its usual time most.
    pub overrun: Option<SlowStage>,
}

impl WorkflowEstimate {
    /// The estimate without figures; absent if the job is no stage of a run with a deadline.
    pub fn of(context: &Context, job: &ObjectMeta, view: &JobView) -> Option<Self> {
        let workflow = view.job.workflow.as_deref()?;
        let stage = StageOfRun::of(job, workflow)?;
        let deadline = view.job.run_deadline(&view.ledger)?;
        let workflows = context.stores.jobs.workflows();
        Some(Self {
            labels: RunLabels {
                run: Arc::clone(&workflow.run),
                class: Arc::clone(&workflow.class),
            },
            overruns: workflows.overruns(&stage, view.now),
            ..Self::new(view, deadline, workflows.later_stages(&stage, view.now))
        })
    }

    /// A deadline of the stage that is over, or before the job began, is left out.
    fn new(view: &JobView, deadline: Instant, later: LaterStages) -> Self {
        let of_job = view.deadline.unwrap_or(deadline);
        let begun = view.ledger.first_pass.unwrap_or(view.job.created);
        let after = begun.max(view.now);
        let stage_deadline = later
            .deadline(deadline)
            .filter(|at| *at > after && *at < of_job);
        Self {
            labels: RunLabels::default(),
            deadline,
            stage_deadline,
            later,
            overruns: Overruns::default(),
            figures: None,
        }
    }

    /// Takes over what a planning pass reports of the stage.
    pub fn update(&mut self, report: &JobReport, now: Instant) {
        let range = report.end_range;
        let end = report.estimated_completion.map(|end| end.max(now));
        self.figures = Some(RunFigures {
            pocd: range.and_then(|range| self.pocd(range, now)),
            expected_end: end.and_then(|end| self.later.expected_end(end)),
            overrun: self.overruns.largest(end.unwrap_or(now)),
        });
    }

    /// What the series of the run show.
    pub fn series(&self) -> (RunLabels, JobFigures) {
        let figures = self.figures.as_ref();
        let shown = JobFigures {
            pocd: figures.and_then(|figures| figures.pocd),
            deadline: Some(self.deadline),
            expected: figures.and_then(|figures| figures.expected_end),
            ..JobFigures::default()
        };
        (self.labels.clone(), shown)
    }

    /// PoCD of the run, if the end of the stage is likely within that range.
    fn pocd(&self, end: EndRange, now: Instant) -> Option<f64> {
        let [median, high] = [end.p50, end.p90].map(|at| at.since(now).seconds());
        let mu = median.max(f64::MIN_POSITIVE).ln();
        let sigma = (high.max(median).max(f64::MIN_POSITIVE).ln() - mu) / Z90;
        let remaining = LogNormalDistribution::new(mu, sigma)?;
        pocd_of_run(self.deadline, &self.later.tails, |at| {
            1.0 - remaining.ln_survival(at.since(now).seconds()).exp()
        })
    }

    /// Whether nothing is known of the later stages.
    pub fn is_unknown(&self) -> bool {
        self.later.deadline(self.deadline).is_none()
    }
}

#[cfg(test)]
mod tests {
    use shed_core::time::Span;

    use super::*;
    use crate::api::Ledger;
    use crate::fixtures;
    use crate::validate::validate;

    fn view(now: i64, first_pass: i64) -> JobView {
        let job = Arc::new(validate(&fixtures::job("deadline: {within: 10m}")).unwrap());
        let ledger = Ledger {
            first_pass: Some(Instant(first_pass)),
            ..Ledger::default()
        };
        JobView::new(job, ledger, Instant(now), Instant(now))
    }

    fn tails(seconds: &[i64]) -> LaterStages {
        LaterStages {
            tails: seconds.iter().map(|it| Span::from_seconds(*it)).collect(),
        }
    }

    #[test]
    fn a_stage_leaves_the_later_ones_their_time() {
        let at = |seconds: i64| Instant(seconds * 1000);
        // The job's own deadline is at 600 s.
        for (now, first_pass, of_run, tail, expected) in [
            (10, 10, 500, 100, Some(400)),
            // The part is over.
            (400, 10, 500, 100, None),
            // It would have ended before the job began.
            (390, 450, 500, 100, None),
            // The job's own deadline is earlier.
            (10, 10, 900, 100, None),
        ] {
            let view = view(now * 1000, first_pass * 1000);
            let run = WorkflowEstimate::new(&view, at(of_run), tails(&[tail; 3]));
            assert_eq!(run.stage_deadline, expected.map(at), "{now} {of_run}");
        }
        let view = view(10_000, 10_000);
        let unknown = WorkflowEstimate::new(&view, at(500), tails(&[100; 2]));
        assert!(unknown.stage_deadline.is_none() && unknown.is_unknown());
    }

    #[test]
    fn pocd_of_a_run_counts_the_later_stages() {
        let view = view(0, 0);
        let end = EndRange {
            p50: Instant(100_000),
            p90: Instant(200_000),
        };
        let pocd = |of_run: i64, tail: i64| {
            let run = WorkflowEstimate::new(&view, Instant(of_run * 1000), tails(&[tail; 3]));
            run.pocd(end, Instant(0))
        };
        let near = |pocd: Option<f64>, expected: f64| (pocd.unwrap() - expected).abs() < 1e-6;
        assert!(near(pocd(300, 200), 0.5), "{:?}", pocd(300, 200));
        assert!(near(pocd(400, 200), 0.9));
        assert!(near(pocd(200, 200), 0.0));
        let run = WorkflowEstimate::new(&view, Instant(300_000), tails(&[]));
        assert_eq!(run.pocd(end, Instant(0)), None);
    }

    #[test]
    fn the_expected_end_of_a_run_counts_the_later_stages() {
        let view = view(0, 0);
        let mut report = fixtures::report("a");
        report.estimated_completion = Some(Instant(100_000));
        let expected = |tails_of: &[i64], now| {
            let mut run = WorkflowEstimate::new(&view, Instant(300_000), tails(tails_of));
            run.update(&report, Instant(now));
            run.figures.and_then(|figures| figures.expected_end)
        };
        assert_eq!(expected(&[10, 50, 900], 0), Some(Instant(150_000)));
        // The stage is late by its own estimate.
        assert_eq!(expected(&[10, 50, 900], 120_000), Some(Instant(170_000)));
        assert_eq!(expected(&[10, 50], 0), None);
    }
}
