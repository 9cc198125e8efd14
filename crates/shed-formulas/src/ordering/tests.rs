use super::*;
use crate::cluster::Server;
use crate::dag::tests::{job, phase};

fn servers(count: u64, cpu: f64) -> Vec<Server> {
    let capacity = CpuMem { cpu, mem: cpu };
    let server = |id| Server {
        id,
        capacity,
        free: capacity,
    };
    (0..count).map(server).collect()
}

fn board(count: u64, cpu: f64, jobs: &[Job]) -> Board {
    Board::new(&servers(count, cpu), jobs).unwrap()
}

fn started(launched: &[Launch]) -> Vec<u64> {
    launched.iter().map(|launch| launch.job).collect()
}

/// A wide job, and a small one that arrives later.
fn wide_and_small() -> [Job; 2] {
    let mut wide = job(1, vec![phase(5.0, &[], 3)]);
    wide.phases[0].demand = CpuMem { cpu: 2.0, mem: 2.0 };
    let mut small = job(2, vec![phase(1.0, &[], 1)]);
    small.arrival = 1.0;
    [wide, small]
}

#[test]
fn backfill_goes_on_behind_a_task_that_fits_nowhere() {
    let order = [0, 1];
    let mut with = board(1, 3.0, &wide_and_small());
    assert_eq!(started(&in_order(&mut with, &order, true)), [1, 2]);
    let mut without = board(1, 3.0, &wide_and_small());
    assert_eq!(started(&in_order(&mut without, &order, false)), [1]);
}

#[test]
fn the_orders_differ_where_arrival_length_and_volume_do() {
    let long_but_small = job(1, vec![phase(9.0, &[], 1)]);
    let mut short_but_wide = job(2, vec![phase(3.0, &[], 8)]);
    short_but_wide.arrival = -1.0;
    let board = board(1, 8.0, &[long_but_small, short_but_wide]);
    assert_eq!(by_arrival(&board), [1, 0]);
    assert_eq!(by_remaining_time(&board, 0.0), Ok(vec![1, 0]));
    assert_eq!(by_volume(&board, 0.0), [0, 1]);
}

#[test]
fn drf_serves_the_job_with_the_smallest_dominant_share() {
    let mut board = board(1, 6.0, &wide_and_small());
    // 1 takes 2 of 6; then 2 with nothing; then 1 again.
    assert_eq!(started(&drf(&mut board)), [1, 2, 1]);
}

#[test]
fn a_perfectly_fair_tetris_still_starts_something() {
    let mut board = board(1, 3.0, &wide_and_small());
    let launched = tetris(&mut board, TetrisScore::Inverse, 1.0);
    assert_eq!(started(&launched), [1, 2]);
}

#[test]
fn tetris_scores_jobs_without_work_left_too() {
    let mut idle = wide_and_small();
    idle[1].phases[0].theta = 0.0;
    let mut board = board(1, 3.0, &idle);
    assert_eq!(tetris(&mut board, TetrisScore::Inverse, 0.0).len(), 2);
}

#[test]
fn queues_keep_their_maximum_and_jobs_without_queue_wait() {
    let mut jobs = [
        job(1, vec![phase(5.0, &[], 9)]),
        job(2, vec![phase(5.0, &[], 9)]),
        job(3, vec![phase(5.0, &[], 9)]),
    ];
    for (job, queue) in jobs.iter_mut().zip(["a", "b", "elsewhere"]) {
        job.queue = queue.into();
    }
    let queue = |name: &str, max| Queue {
        name: name.into(),
        capacity: 0.5,
        max,
    };
    let mut board = board(1, 10.0, &jobs);
    let launched = capacity(&mut board, &[queue("b", 1.0), queue("a", 0.2)]);
    assert_eq!(started(&launched), [1, 2, 1, 2, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn carbyne_gives_back_what_can_wait() {
    // Phase 1 may take 8 seconds longer than it does.
    let phases = vec![
        phase(9.0, &[], 1),
        phase(1.0, &[], 1),
        phase(1.0, &[0, 1], 1),
    ];
    let mut short = job(2, vec![phase(2.0, &[], 1)]);
    short.arrival = 1.0;
    let jobs = [job(1, phases), short];
    let round = carbyne(&mut board(1, 2.0, &jobs), 5.0).unwrap();
    assert_eq!(started(&round.fair), [1, 2]);
    assert_eq!(round.leftover, []);
    let round = carbyne(&mut board(1, 3.0, &jobs), 5.0).unwrap();
    let later = &round.leftover[0];
    assert_eq!((later.job, later.phase), (1, 1));
    let patient = carbyne(&mut board(1, 3.0, &jobs), 9.0).unwrap();
    assert_eq!(patient.leftover, []);
}

#[test]
fn no_round_takes_more_than_there_is() {
    for cpu in [0.5, 1.0, 2.5, 7.0] {
        let jobs = wide_and_small();
        let mut boards: Vec<Board> = vec![board(2, cpu, &jobs); 4];
        let order = by_arrival(&boards[0]);
        in_order(&mut boards[0], &order, true);
        drf(&mut boards[1]);
        tetris(&mut boards[2], TetrisScore::Plus, 0.25);
        capacity(&mut boards[3], &[]);
        for board in boards {
            let mut free = board.servers().iter().map(|server| server.free);
            assert!(free.all(|free| free.cpu >= 0.0 && free.mem >= 0.0));
        }
    }
}
