use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::*;
use crate::cluster::pod::PodFacts;
use crate::fixtures;
use crate::validate::validate;

const TOTAL: u64 = 24;

fn job() -> ValidatedJob {
    let spec = "{completions: 2, resume: Range, progress: {file: {}}}";
    validate(&fixtures::job(spec)).unwrap()
}

/// An attempt that ended well at this unit.
fn ended_at(task: u32, number: u32, reached: u64) -> PodFacts {
    let pod = serde_saphyr::from_str(&format!(
        "{{metadata: {{name: p-{task}-{number}, uid: u-{task}-{number}, labels: {{{}: job, {}: '{task}', \
         {}: '{number}'}}}}, spec: {{containers: [{{name: task}}]}}}}",
        api::LABEL_JOB_UID,
        api::LABEL_TASK,
        api::LABEL_ATTEMPT,
    ));
    let mut facts = PodFacts::from_pod(&pod.unwrap(), Instant(0));
    let attempt = facts.attempt.as_mut().expect("an attempt");
    attempt.stage = Stage::Succeeded {
        finished: Instant(1),
    };
    attempt.reached = Some(Units {
        done: reached,
        total: TOTAL,
    });
    facts
}

/// A random ledger with segments, and attempts that ended somewhere.
struct Drawn {
    ledger: Ledger,
    pods: JobPods,
}

fn draw(random: &mut Pcg64Mcg) -> Drawn {
    let mut below = |count: u64| random.next_u64() % count;
    let mut ledger = Ledger::default();
    let mut pods = JobPods::new();
    for _ in 0..=below(5) {
        let index = u32::try_from(below(u64::from(ledger.indexes(2)))).unwrap();
        let done = below(TOTAL);
        let at = Units { done, total: TOTAL };
        ledger.split(index, at, 2);
    }
    let indexes: Vec<u32> = ledger.segments.keys().copied().collect();
    for index in indexes {
        let number = ledger.launch(&original(index), Instant(0));
        match below(4) {
            0 => {
                ledger.win(TaskIndex(index), number, Instant(1), None);
            }
            1 => {
                ledger.failed.insert(TaskIndex(index));
            }
            _ => {
                let pod = ended_at(index, number.0, below(TOTAL + 1));
                pods.insert((index, number.0), Arc::new(pod));
            }
        }
    }
    Drawn { ledger, pods }
}

fn original(task: u32) -> Launch {
    shed_core::fixtures::launch(task, AttemptKind::Original)
}

/// Corrects a ledger on a thread of its own, so that a loop without end fails the test.
fn put_right_of(drawn: Drawn) -> Option<Ledger> {
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        let Drawn { ledger, pods } = drawn;
        let read = JobView::new(job().into(), ledger, Instant(2), Instant(2));
        let mut view = JobView { pods, ..read };
        put_right(&mut view);
        drop(done.send(view.ledger));
    });
    waiting.recv_timeout(Duration::from_secs(20)).ok()
}

fn tile(ledger: &Ledger, task: u32) -> bool {
    let parts = ledger.parts_of(task);
    let mut at = 0;
    parts.is_empty()
        || parts.iter().all(|part| {
            let follows = part.start == at && part.end > at;
            at = part.end;
            follows
        }) && at == TOTAL
}

#[test]
fn the_repair_of_ranges_ends_and_keeps_tiles_and_winners() {
    let mut random = Pcg64Mcg::seed_from_u64(24);
    let (mut taken_over, mut failures_taken_back) = (0, 0);
    for case in 0..3000 {
        let drawn = draw(&mut random);
        let before = drawn.ledger.clone();
        let after =
            put_right_of(drawn).unwrap_or_else(|| panic!("no end: case {case}: {before:#?}"));
        assert!(
            tile(&after, 0) && tile(&after, 1),
            "case {case}: {after:#?}"
        );
        for (index, old) in before.segments.iter() {
            let new = &after.segments[index];
            if old.winner.is_some() {
                assert_eq!(new, old, "case {case}");
            }
            let is_taken_back = before.has_failed(*index) && !after.has_failed(*index);
            assert!(!is_taken_back || new.dropped, "case {case}: {after:#?}");
            taken_over += u32::from(new.dropped && !old.dropped);
            failures_taken_back += u32::from(is_taken_back);
        }
    }
    assert!(
        taken_over > 50 && failures_taken_back > 10,
        "{taken_over}, {failures_taken_back}"
    );
}

/// The ledger was edited: a segment without a unit would follow itself.
#[test]
fn a_part_without_units_is_behind_no_part() {
    let mut ledger = Ledger::default();
    let at = Units {
        done: 10,
        total: TOTAL,
    };
    let rest = ledger.split(0, at, 2).unwrap();
    ledger.segments.change(rest, |part| part.end = 10);
    ledger.launch(&original(0), Instant(0));
    let pods = JobPods::from([((0, 0), Arc::new(ended_at(0, 0, TOTAL)))]);
    let after = put_right_of(Drawn {
        ledger: ledger.clone(),
        pods,
    });
    assert_eq!(after, Some(ledger));
}
