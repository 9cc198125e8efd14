//! The whole product at random: two jobs of two tasks, each with an original and two clones, one
//! process that crashes for both, watches that stand still for both.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use shed_core::snapshot::OnMiss;

use super::model::{Model, Move, Size};
use super::world::{Budget, World};

const WALKS: u64 = 1000;
const MOVES: usize = 150;
/// After this many moves, and at the end, the walk checks that the job comes to rest.
const REST_EVERY: usize = 16;
/// Faults are among the possible moves only this often: otherwise all of them are used up before the first
/// pod runs.
const FAULTS_ONE_IN: u64 = 8;

const SIZE: Size = Size {
    tasks: 2,
    attempts: 3,
    backoff_limit_per_index: 1,
    on_miss: OnMiss::Fail,
    budget: Budget {
        crashes: 1,
        stale: 1,
        stale_reads: 0,
        waits: 2,
        lost: 1,
        disruptions: 1,
        suspends: 2,
        deadlines: 1,
    },
};

/// Faults of the process or of a watch affect both jobs.
fn is_shared(next: Move) -> bool {
    matches!(
        next,
        Move::Crash | Move::HoldJob { .. } | Move::HoldPods { .. } | Move::CatchUp
    )
}

fn is_fault(next: Move) -> bool {
    is_shared(next)
        || matches!(
            next,
            Move::LoseAnswer(_) | Move::Disrupt(_) | Move::Suspend | Move::Deadline
        )
}

fn below(random: &mut Pcg64Mcg, limit: usize) -> usize {
    let limit = limit as u64;
    usize::try_from(random.next_u64() % limit).expect("below a length")
}

/// The moves of both jobs, each with its job.
fn choices(model: &Model, jobs: &[World; 2], with_faults: bool) -> Vec<(usize, Move)> {
    let mut choices = Vec::new();
    for (job, world) in jobs.iter().enumerate() {
        let mut moves = Vec::new();
        model.moves(world, &mut moves);
        choices.extend(moves.into_iter().map(|next| (job, next)));
    }
    let all = choices.clone();
    choices
        .retain(|&(job, next)| (with_faults || !is_fault(next)) && !(job == 1 && is_shared(next)));
    if choices.is_empty() { all } else { choices }
}

fn come_to_rest(model: &Model, jobs: &[World; 2], seed: u64, made: &[(usize, Move)]) {
    for world in jobs {
        assert!(
            model.rests(world),
            "walk {seed}: no rest after {made:?}: {world:?}"
        );
    }
}

/// One walk: how many of its jobs were finished at its end.
fn walk(model: &Model, seed: u64) -> usize {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut jobs = [model.init(), model.init()];
    let mut made = Vec::new();
    for _ in 0..MOVES {
        let with_faults = random.next_u64().is_multiple_of(FAULTS_ONE_IN);
        let choices = choices(model, &jobs, with_faults);
        if choices.is_empty() {
            break;
        }
        let (job, next) = choices[below(&mut random, choices.len())];
        made.push((job, next));
        if is_shared(next) {
            for world in &mut jobs {
                model.make(world, next);
            }
        } else {
            model.make(&mut jobs[job], next);
        }
        for world in &jobs {
            assert_eq!(world.broken, None, "walk {seed}: {made:?}: {world:?}");
        }
        if made.len().is_multiple_of(REST_EVERY) {
            come_to_rest(model, &jobs, seed, &made);
        }
    }
    come_to_rest(model, &jobs, seed, &made);
    let finished = jobs.iter().filter(|world| world.job.ledger.finished);
    finished.count()
}

fn walks(on_miss: OnMiss) {
    let model = Model::new(Size { on_miss, ..SIZE });
    let finished: usize = (1..=WALKS).map(|seed| walk(&model, seed)).sum();
    println!("{WALKS} walks of {MOVES} moves, {finished} jobs finished");
    assert!(finished > 0, "no walk came to an end");
}

#[test]
fn random_walks_of_two_jobs_of_two_tasks_of_three_attempts() {
    walks(OnMiss::Fail);
}

#[test]
fn random_walks_of_two_jobs_that_continue_when_they_are_late() {
    walks(OnMiss::Continue);
}
