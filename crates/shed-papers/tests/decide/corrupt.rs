//! Impossible facts: `decide` may use the valid rest of them, and every number that it returns is a number.

use proptest::prelude::*;
use shed_core::decide::decide;
use shed_core::guard::decide_guarded_by;
use shed_core::memory::Memory;
use shed_core::plan::{JobReport, Move};
use shed_core::plan_check::plan_check;
use shed_core::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, JobSnapshot, NodeIndex, Progress, ResumePoint,
    Snapshot,
};
use shed_core::time::{Instant, Span};
use shed_core::validate::validate;

use super::properties::{any_policy, any_snapshot};

const VALUES: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, 1.5];
const TIMES: [i64; 3] = [i64::MAX, i64::MIN, i64::MAX / 2];

fn spoil_attempt(attempt: &mut AttemptSnapshot, what: u8, value: f64, time: Instant) {
    match what {
        0 => attempt.start_progress = value,
        1 => attempt.launched = time,
        2 => attempt.started = Some(time),
        3 => attempt.node = Some(NodeIndex(99)),
        4 => attempt.state = AttemptState::Stuck { since: time },
        5 => {
            attempt.checkpoint = Some(ResumePoint {
                progress: value,
                checkpoint: "".into(),
            });
        }
        _ => {
            attempt.progress = Some(Progress {
                first_at: time,
                first: value,
                last_at: Instant(0),
                last: value,
            });
        }
    }
}

fn spoil_job(job: &mut JobSnapshot, what: u8, value: f64, time: Instant) {
    match what {
        0 => job.rules.completions = 0,
        1 => job.demand.set("cpu", -7),
        2 => job.demand.set("gpu", 1),
        3 => job.eligible_nodes = [NodeIndex(1), NodeIndex(0), NodeIndex(9)].into(),
        4 => job.submitted = time,
        5 => job.deadline = Some(time),
        6 => job.ended_runs.push(Span(time.0)),
        7 => job.ended_runs.push(Span(-1)),
        8 => job.tasks.extend(job.tasks.first().cloned()),
        9 => job.tasks.reverse(),
        _ => {
            for task in &mut job.tasks {
                task.resume_point = Some(ResumePoint {
                    progress: value,
                    checkpoint: "".into(),
                });
                let again = task.attempts.first().cloned();
                task.attempts.extend(again);
            }
        }
    }
}

fn spoil_cluster(snapshot: &mut Snapshot, what: u8, time: Instant) {
    match what {
        0 => snapshot.launch_overhead = Some(Span(time.0)),
        1 => snapshot.nodes[1].name = snapshot.nodes[0].name.clone(),
        2 => snapshot.nodes[0].allocatable.set("cpu", -5),
        3 => snapshot.jobs.extend(snapshot.jobs.first().cloned()),
        _ => snapshot.now = time,
    }
}

fn spoil(snapshot: &mut Snapshot, (level, what, value, time): (u8, u8, usize, usize)) {
    let (value, time) = (VALUES[value], Instant(TIMES[time]));
    let job = snapshot.jobs.first_mut();
    match level {
        0 => spoil_cluster(snapshot, what % 5, time),
        1 => job
            .into_iter()
            .for_each(|job| spoil_job(job, what % 11, value, time)),
        _ => {
            let tasks = job.into_iter().flat_map(|job| &mut job.tasks);
            let attempts = tasks.flat_map(|task| &mut task.attempts);
            attempts.for_each(|attempt| spoil_attempt(attempt, what % 7, value, time));
        }
    }
}

fn is_sound(report: &JobReport) -> bool {
    let pocds = report.pocd_before.iter().chain(&report.pocd_after);
    let amounts = report
        .clones
        .iter()
        .flat_map(|clone| [clone.pocd_gain, clone.cost_slot_seconds]);
    let kills = report.kills.iter();
    let kills = kills.flat_map(|kill| [kill.freed_slot_seconds, kill.miss_added]);
    pocds.into_iter().all(|pocd| (0.0..=1.0).contains(pocd))
        && amounts
            .chain(kills.flatten())
            .chain(report.attempt_slot_seconds)
            .all(f64::is_finite)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn wrong_facts_cost_their_job_its_clones_and_nothing_else(
        mut snapshot in any_snapshot(),
        policy in any_policy(),
        faults in proptest::collection::vec((0..3u8, any::<u8>(), 0..5usize, 0..3usize), 1..4),
    ) {
        for fault in faults {
            spoil(&mut snapshot, fault);
        }
        let (guarded, _) = decide_guarded_by(&snapshot, Memory::default(), &policy, decide);
        prop_assert_eq!(guarded.panics, 0);
        // A fact that is valid by itself but leaves nothing to do.
        for fault in validate(&guarded.snapshot) {
            let nothing_to_do = ["is zero", "is more than any eligible node has"];
            prop_assert!(nothing_to_do.contains(&fault.problem), "{}", fault);
        }
        prop_assert_eq!(plan_check(&guarded.snapshot, &policy, &guarded.plan), vec![]);
        for planned in &guarded.plan.actions {
            if let Move::Launch(launch) = &planned.action {
                let is_refused = guarded.faults.iter().any(|f| f.job.as_ref() == Some(&planned.job));
                prop_assert!(launch.kind != AttemptKind::Clone || !is_refused);
            }
        }
        for report in &guarded.plan.report.jobs {
            prop_assert!(is_sound(report), "{:?}", report);
        }
    }
}
