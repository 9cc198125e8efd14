//! A job's PoCD, and the gain and cost of stopping an attempt, computed by hand from given probabilities.

use crate::capacity::UnusableNodes;
use crate::estimate::pareto::ParetoDistribution;
use crate::estimate::pocd::probability;
use crate::fixtures::{JobBuilder, at, attempt, job, resume_point};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::KillReport;
use crate::round::findings::JobFindings;
use crate::round::job::JobView;
use crate::snapshot::{JobSnapshot, KillKind, SpeculationMode};

/// Task 0 has one attempt, task 1 has three.
fn two_tasks() -> JobBuilder {
    job("a")
        .tasks(2)
        .deadline_in(100.0)
        .task(0, [attempt(0)])
        .task(1, [attempt(0), attempt(1), attempt(2)])
}

/// 70 s before its deadline. The attempts miss with probability 0.4; 0.5, 0.2 and 0.1, and are
/// expected to end in 20 s; 40 s, 30 s and 60 s.
fn judged(job: &JobSnapshot) -> JobView<'_> {
    JobView::new(job, findings(job))
}

fn findings(job: &JobSnapshot) -> JobFindings {
    let mut found = JobFindings::of_look(at(30.0), 0.0, job, &UnusableNodes::default());
    let (t_min, beta) = (100.0, 2.0);
    found.estimate.distribution = Some(ParetoDistribution { t_min, beta }.into());
    let attempts = found.estimate.tasks.iter_mut();
    let attempts = attempts.flat_map(|task| &mut task.attempts);
    let judgements = [(0.4, 20.0), (0.5, 40.0), (0.2, 30.0), (0.1, 60.0)];
    for (attempt, (miss, remaining)) in attempts.zip(judgements) {
        attempt.ln_miss = libm::log(miss);
        attempt.remaining = Some(remaining);
    }
    found
}

/// The report on stopping attempt 1 of task 1.
fn kill(state: &JobView<'_>) -> KillReport {
    let attempt = (TaskIndex(1), AttemptNumber(1));
    state.weigh_kill(attempt, KillKind::Prune, None)
}

#[track_caller]
fn assert_close(got: Option<f64>, wanted: f64) {
    let got = got.unwrap();
    assert!((got - wanted).abs() < 1e-12, "{got}, not {wanted}");
}

#[test]
fn a_stop_frees_slot_seconds_and_adds_miss_probability() {
    let job = two_tasks().build();
    let kill = kill(&judged(&job));
    assert_eq!(kill.freed_slot_seconds, Some(40.0));
    assert_close(kill.miss_added, 0.5 * 0.1 - 0.5 * 0.2 * 0.1);
}

#[test]
fn a_kill_is_weighed_with_the_kills_before_it_done() {
    let job = two_tasks().build();
    let mut state = judged(&job);
    state.draft.doomed.insert((TaskIndex(1), AttemptNumber(0)));
    let kill = kill(&state);
    assert_eq!(kill.freed_slot_seconds, Some(60.0));
    assert_close(kill.miss_added, 0.1 - 0.2 * 0.1);
}

#[test]
fn the_cost_of_a_stop_needs_a_distribution_and_a_deadline() {
    let endless = two_tasks().with(|job| job.deadline = None).build();
    assert_eq!(kill(&judged(&endless)).miss_added, None);
    let job = two_tasks().build();
    let mut found = findings(&job);
    found.estimate.distribution = None;
    assert_eq!(kill(&JobView::new(&job, found)).miss_added, None);
}

#[test]
fn the_pocd_is_the_product_over_tasks_and_some_can_be_left_out() {
    let job = two_tasks().build();
    let mut state = judged(&job);
    state.predict(at(30.0), || 1.0);
    let with_all = libm::log(0.6 * (1.0 - 0.5 * 0.2 * 0.1));
    assert_close(state.ln_pocd_before, with_all);
    assert_close(state.ln_pocd_without(|_| false), with_all);
    let rest = state.ln_pocd_without(|task| task == TaskIndex(1));
    assert_close(rest, libm::log(0.6));
}

#[test]
fn the_expected_pocd_counts_clones_as_far_as_they_gain() {
    let expected = |job: &JobSnapshot, gain: f64| {
        let mut found = findings(job);
        found.further_attempts = 2;
        let mut state = JobView::new(job, found);
        state.predict(at(30.0), || gain);
        let before = state.ln_pocd_before.map(probability).unwrap();
        let expected = state.pocd_expected(Some(before)).unwrap();
        (before, expected)
    };
    let job = two_tasks().deadline_in(300.0).build();
    let (before, none) = expected(&job, 0.0);
    assert_close(Some(none), before);
    let (_, half) = expected(&job, 0.5);
    let (_, full) = expected(&job, 1.0);
    assert!(before < half && half < full, "{before} {half} {full}");
    let stays = two_tasks().deadline_in(300.0);
    let stays = stays.with(|job| job.rules.speculation = SpeculationMode::Observe);
    let (before, observed) = expected(&stays.build(), 1.0);
    assert_close(Some(observed), before);
}

#[test]
fn a_task_that_waits_will_begin_at_its_checkpoint() {
    let waiting = job("a").tasks(2).deadline_in(100.0).resumes().done([0]);
    let waiting = waiting.task_with(1, [], |task| {
        task.resume_point = Some(resume_point(0.6));
    });
    let job = waiting.build();
    let mut found = findings(&job);
    found.t_avg = 5.0;
    let mut state = JobView::new(&job, found);
    state.draft.admitted = 1;
    state.predict(at(30.0), || 1.0);
    // At least 40 s of it remain, and 65 s.
    let miss = 40.0 / 65.0 * (40.0 / 65.0);
    assert_close(state.ln_pocd_before, libm::log(1.0 - miss));
}

/// One task whose attempt ends in 20 s by its reports, with a deviation of 2 s; its job is due in `slack` seconds.
fn reporting(job: &JobSnapshot) -> JobFindings {
    let mut found = findings(job);
    let attempt = &mut found.estimate.tasks[0].attempts[0];
    attempt.total = Some(40.0);
    attempt.deviation = Some(2.0);
    found
}

fn range_of(job: &JobSnapshot, found: JobFindings) -> Option<[f64; 2]> {
    let mut state = JobView::new(job, found);
    state.predict(at(30.0), || 1.0);
    state.predict_range(at(30.0));
    let range = state.end_range?;
    Some([range.p50, range.p90].map(|end| end.since(at(30.0)).seconds()))
}

#[test]
fn the_likely_end_has_the_quantiles_of_the_prediction() {
    let one = |slack| job("a").tasks(1).deadline_in(slack).task(0, [attempt(0)]);
    let far = one(1000.0).build();
    let [p50, p90] = range_of(&far, reporting(&far)).unwrap();
    // 1.2816 deviations later. The search errs by a tenth of a second.
    assert!((19.9..20.2).contains(&p50), "{p50}");
    assert!((22.4..22.8).contains(&p90), "{p90}");
    let endless = far.clone();
    let endless = JobSnapshot {
        deadline: None,
        ..endless
    };
    assert_eq!(range_of(&endless, reporting(&endless)), Some([p50, p90]));
}

#[test]
fn clones_that_would_meet_the_deadline_bound_the_likely_end() {
    let due = job("a").tasks(1).deadline_in(151.0).task(0, [attempt(0)]);
    let due = due.build();
    let late = |further| {
        let mut found = reporting(&due);
        found.estimate.tasks[0].attempts[0].remaining = Some(500.0);
        found.estimate.tasks[0].attempts[0].total = Some(600.0);
        found.estimate.tasks[0].attempts[0].ln_miss = 0.0;
        found.further_attempts = further;
        range_of(&due, found).unwrap()
    };
    // New attempts take at least 100 s, and 121 s are left.
    let [p50, p90] = late(0);
    assert!((499.0..503.0).contains(&p50) && p90 > p50, "{p50} {p90}");
    let [p50, p90] = late(2);
    assert!((120.9..121.1).contains(&p50) && p90 > 500.0, "{p50} {p90}");
}

#[test]
fn nothing_known_means_no_likely_end() {
    let due = two_tasks().build();
    let mut found = findings(&due);
    found.estimate.distribution = None;
    assert_eq!(range_of(&due, found), None);
    let waits = job("a").tasks(2).deadline_in(100.0).build();
    assert_eq!(range_of(&waits, findings(&waits)), None);
    let failed = two_tasks().failed([1]).build();
    assert_eq!(range_of(&failed, findings(&failed)), None);
}
