//! When a stage of a run should be complete, and PoCD of the run. People read both, and nothing is decided on the first.

use kube::api::ObjectMeta;
use shed_core::estimate::distribution::AttemptDistribution;
use shed_core::estimate::log_normal::LogNormalDistribution;
use shed_core::plan::EndRange;
use shed_core::time::Instant;
use shed_core::workflow::pocd_of_run;

use crate::context::Context;
use crate::job::view::JobView;
use crate::workflow_runs::{LaterStages, StageOfRun};

/// The 90th percentile of the standard normal distribution.
const Z90: f64 = 1.281_551_565_544_600_4;

/// What the planner knows of a job as a stage of a run with a deadline.
#[derive(Debug, Clone, PartialEq)]
pub struct StagePart {
    /// The deadline of the run.
    pub of_run: Instant,
    /// When the stage should be complete so that the later ones have the time that they take, if that is earlier than
    /// the job's deadline.
    pub of_stage: Option<Instant>,
    /// What is known of the later stages.
    pub later: LaterStages,
    /// PoCD of the run, after the last planning pass.
    pub pocd: Option<f64>,
}

impl StagePart {
    /// The part of a job; absent if it is no stage of a run with a deadline.
    pub fn of(context: &Context, job: &ObjectMeta, view: &JobView) -> Option<Self> {
        let workflow = view.job.workflow.as_deref()?;
        let stage = StageOfRun::of(job, workflow)?;
        let of_run = view.job.run_deadline(&view.ledger)?;
        let workflows = context.stores.jobs.workflows();
        let later = workflows.later_stages(&stage, view.now);
        Some(Self::new(view, of_run, later))
    }

    /// A part that is over, or that would end before the job began, is left out.
    fn new(view: &JobView, of_run: Instant, later: LaterStages) -> Self {
        let of_job = view.deadline.unwrap_or(of_run);
        let begun = view.ledger.first_pass.unwrap_or(view.job.created);
        let after = begun.max(view.now);
        let of_stage = later
            .deadline(of_run)
            .filter(|at| *at > after && *at < of_job);
        Self {
            of_run,
            of_stage,
            later,
            pocd: None,
        }
    }

    /// PoCD of the run, if the end of the stage is likely within that range.
    pub fn pocd_of_run(&self, end: EndRange, now: Instant) -> Option<f64> {
        let [median, high] = [end.p50, end.p90].map(|at| at.since(now).seconds());
        let mu = median.max(f64::MIN_POSITIVE).ln();
        let sigma = (high.max(median).max(f64::MIN_POSITIVE).ln() - mu) / Z90;
        let remaining = LogNormalDistribution::new(mu, sigma)?;
        pocd_of_run(self.of_run, &self.later.tails, |at| {
            1.0 - remaining.ln_survival(at.since(now).seconds()).exp()
        })
    }

    /// Whether nothing is known of the later stages.
    pub fn is_unknown(&self) -> bool {
        self.later.deadline(self.of_run).is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
            let part = StagePart::new(&view, at(of_run), tails(&[tail; 3]));
            assert_eq!(part.of_stage, expected.map(at), "{now} {of_run}");
        }
        let view = view(10_000, 10_000);
        let unknown = StagePart::new(&view, at(500), tails(&[100; 2]));
        assert!(unknown.of_stage.is_none() && unknown.is_unknown());
    }

    #[test]
    fn pocd_of_a_run_counts_the_later_stages() {
        let view = view(0, 0);
        let end = EndRange {
            p50: Instant(100_000),
            p90: Instant(200_000),
        };
        let pocd = |of_run: i64, tail: i64| {
            let part = StagePart::new(&view, Instant(of_run * 1000), tails(&[tail; 3]));
            part.pocd_of_run(end, Instant(0))
        };
        let near = |pocd: Option<f64>, expected: f64| (pocd.unwrap() - expected).abs() < 1e-6;
        assert!(near(pocd(300, 200), 0.5), "{:?}", pocd(300, 200));
        assert!(near(pocd(400, 200), 0.9));
        assert!(near(pocd(200, 200), 0.0));
        let part = StagePart::new(&view, Instant(300_000), tails(&[]));
        assert_eq!(part.pocd_of_run(end, Instant(0)), None);
    }
}
