//! The frozen data of a run, as text. Numbers are printed so that each bit shows.

use std::fmt::Write as _;

use shed_core::ids::NodeName;
use shed_core::memory::Memory;
use shed_core::plan::{JobReport, Move, Plan, Settled};
use shed_core::snapshot::{JobSnapshot, Snapshot};
use shed_core::time::Instant;
use shed_sim::engine::Watch;
use shed_sim::outcome::{AttemptOutcome, Outcome};

/// One line per fact.
#[derive(Default)]
pub struct Record {
    pub text: String,
}

macro_rules! line {
    ($record:expr, $($part:tt)*) => {
        writeln!($record.text, $($part)*).expect("a string takes it")
    };
}

fn milliseconds(at: Option<Instant>) -> Option<i64> {
    at.map(|at| at.0)
}

fn names(nodes: &[NodeName]) -> Vec<&str> {
    nodes.iter().map(|node| &*node.0).collect()
}

impl Record {
    /// How everything ended.
    pub fn outcome(&mut self, outcome: &Outcome) {
        for job in &outcome.jobs {
            let (deadline, ended) = (milliseconds(job.deadline), milliseconds(job.ended));
            let (id, arrival, complete) = (&job.id, job.arrival.0, job.complete);
            line!(self, "job {id} {arrival} {deadline:?} {ended:?} {complete}");
        }
        for attempt in &outcome.attempts {
            self.attempt(attempt);
        }
        let t = &outcome.totals;
        let launched = [t.attempts, t.clones, t.clone_wins, t.tasks_done];
        let ended = [t.kills, t.failures, t.disruptions];
        let degraded = [t.refused, t.panics, t.cut_short];
        let held = [t.machine_ms, t.useful_ms];
        line!(self, "totals {launched:?} {ended:?} {degraded:?} {held:?}");
    }

    fn attempt(&mut self, attempt: &AttemptOutcome) {
        let AttemptOutcome {
            job,
            stage,
            task,
            number,
            kind,
            node,
            launched,
            placed,
            started,
            ended,
            begin,
            kill,
            bucket,
        } = attempt;
        let [placed, started] = [*placed, *started].map(milliseconds);
        let bucket = bucket.map_or("won", |bucket| bucket.label());
        let (kind, kill) = (kind.label(), kill.map(|kill| kill.label()));
        line!(
            self,
            "attempt {job} {stage} {task} {number} {kind} {node:?} {} {placed:?} {started:?} {} \
             {begin:?} {kill:?} {bucket}",
            launched.0,
            ended.0
        );
    }

    fn job(&mut self, report: &JobReport) {
        let JobReport {
            key,
            pocd_before,
            pocd_after,
            estimated_completion,
            is_cut_short,
            refusals,
            waiting,
            ..
        } = report;
        let completion = milliseconds(*estimated_completion);
        let refused: Vec<(u32, &str)> = refusals
            .iter()
            .map(|refusal| (refusal.task.0, refusal.why.label()))
            .collect();
        line!(
            self,
            "estimate {} {pocd_before:?} {pocd_after:?} {completion:?} {is_cut_short} {waiting} \
             {refused:?}",
            key.0
        );
    }

    fn action(&mut self, job: &str, action: &Move) {
        match action {
            Move::Launch(launch) => {
                let (task, kind) = (launch.task.0, launch.kind.label());
                let [avoid, rather_not] = [&launch.avoid, &launch.rather_not].map(|n| names(n));
                let node = names(launch.node.as_slice());
                line!(
                    self,
                    "launch {job} {task} {kind} {node:?} {avoid:?} {rather_not:?}"
                );
            }
            Move::Kill(kill) => {
                let (task, attempt, kind) = (kill.task.0, kill.attempt.0, kill.kind.label());
                line!(self, "kill {job} {task} {attempt} {kind}");
            }
        }
    }
}

impl Watch for Record {
    fn pass(&mut self, snapshot: &Snapshot, _memory: Memory, plan: &Plan) {
        let next = milliseconds(plan.report.next_pass);
        line!(self, "pass {} {next:?}", snapshot.now.0);
        for report in &plan.report.jobs {
            self.job(report);
        }
        for planned in &plan.actions {
            self.action(&planned.job.0, &planned.action);
        }
    }

    /// The attempts' outcomes include the actions of `settle`.
    fn settled(&mut self, _job: &JobSnapshot, _action: &Settled) {}
}
