use super::*;
use crate::adopt::translate;
use crate::api::SegmentEntry;
use crate::fixtures;
use shed_core::ids::TaskIndex;

const NOW: Instant = Instant(100_000);

struct World {
    job: Job,
    ledger: Ledger,
    recorded: DeadlineJobStatus,
    pods: PodCounts,
}

impl World {
    fn new(change: &str) -> Self {
        Self {
            job: fixtures::batch_job(change),
            ledger: Ledger::default(),
            recorded: DeadlineJobStatus::default(),
            pods: PodCounts::default(),
        }
    }

    fn says(&mut self, type_: &str, reason: &str) {
        self.recorded.conditions.push(Condition {
            type_: type_.to_owned(),
            status: "True".to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: clock::time(NOW),
        });
    }

    /// Renders a status, and keeps it as the Job's status.
    fn status(&mut self) -> JobStatus {
        let companion = fixtures::companion(&self.job);
        let job = translate::validated(&companion, &self.job).unwrap();
        let status = render(Input {
            job: &self.job,
            adopted: job.adopted.as_ref().unwrap(),
            recorded: &self.recorded,
            ledger: &self.ledger,
            pods: self.pods,
            completions: job.rules.completions,
            suspend: job.rules.suspend,
            now: NOW,
        });
        self.job.status = Some(status.clone());
        status
    }

    fn types(&mut self) -> Vec<String> {
        let conditions = self.status().conditions.unwrap();
        let held = conditions.into_iter().filter(|own| own.status == "True");
        held.map(|own| own.type_).collect()
    }
}

fn won(indexes: &[u32]) -> IndexSet {
    let mut set = IndexSet::new();
    for &index in indexes {
        set.insert(TaskIndex(index));
    }
    set
}

#[test]
fn indexes_are_reported_for_indexed_jobs_as_batch_v1_does() {
    let mut world = World::new("completions: 9, completionMode: Indexed, backoffLimitPerIndex: 1");
    world.ledger.done = won(&[0, 1, 4, 5, 6]);
    world.ledger.failed = won(&[2, 3]);
    let status = world.status();
    assert_eq!(status.completed_indexes.as_deref(), Some("0,1,4-6"));
    assert_eq!(status.failed_indexes.as_deref(), Some("2,3"));
    assert_eq!(status.succeeded, Some(5));

    let mut world = World::new("completions: 9");
    world.ledger.done = won(&[0, 1]);
    let status = world.status();
    assert_eq!(
        (status.completed_indexes, status.failed_indexes),
        (None, None)
    );
    assert_eq!(status.succeeded, Some(2));
}

#[test]
fn an_index_whose_input_was_split_is_completed_by_its_last_part() {
    let mut world = World::new("completions: 2, completionMode: Indexed");
    let part = |index, start, end| SegmentEntry {
        index,
        task: 0,
        start,
        end,
        total: 1000,
        winner: None,
        dropped: false,
    };
    world.ledger.segments = [part(0, 0, 600), part(2, 600, 1000)].into_iter().collect();
    world.ledger.done = won(&[0, 1]);
    let status = world.status();
    assert_eq!(status.completed_indexes.as_deref(), Some("1"));
    assert_eq!(status.succeeded, Some(1));
    world.ledger.done = won(&[0, 1, 2]);
    let status = world.status();
    assert_eq!(status.completed_indexes.as_deref(), Some("0,1"));
    assert_eq!(status.succeeded, Some(2));
}

#[test]
fn the_interim_condition_comes_before_the_final_one() {
    let mut world = World::new("completions: 1");
    world.pods = PodCounts {
        active: 1,
        ready: 1,
        terminating: 1,
    };
    world.ledger.ending = Some(Conclusion::Complete);
    world.says(api::SUCCESS_CRITERIA_MET, reason::COMPLETIONS_REACHED);
    let interim = world.status();
    assert_eq!((interim.active, interim.terminating), (Some(1), Some(1)));
    assert!(interim.completion_time.is_none());

    world.ledger.finished = true;
    world.ledger.last_win = Some(Instant(99_500));
    world.says(api::COMPLETE, reason::COMPLETIONS_REACHED);
    let last = world.status();
    assert_eq!(
        (last.active, last.ready, last.terminating),
        (None, Some(0), Some(0))
    );
    assert!(last.completion_time >= last.start_time, "{last:?}");
    assert_eq!(world.types(), [api::SUCCESS_CRITERIA_MET, api::COMPLETE]);
}

/// The apiserver returns such a count as absent: a 0 that is written would be written again and again.
#[test]
fn counts_of_zero_are_absent_where_the_apiserver_omits_them() {
    let mut world = World::new("completions: 1");
    let status = world.status();
    assert_eq!((status.succeeded, status.failed), (None, None));
}

#[test]
fn what_has_ended_does_not_change_any_more() {
    let mut world = World::new("completions: 1");
    world.ledger.ending = Some(Conclusion::BackoffLimit);
    world.ledger.finished = true;
    world.says(api::FAILURE_TARGET, reason::BACKOFF_LIMIT);
    world.says(api::FAILED, reason::BACKOFF_LIMIT);
    let ended = world.status();
    assert!(ended.start_time.is_some(), "also if it never started");
    world.ledger.counts.failed = 7;
    assert_eq!(world.status(), ended);
}

#[test]
fn a_target_that_was_turned_back_is_not_reported() {
    let mut world = World::new("completions: 1");
    world.says(api::FAILURE_TARGET, reason::DEADLINE_MET);
    world.recorded.conditions[0].status = "False".to_owned();
    assert!(world.types().is_empty());
    world.recorded.conditions[0].status = "True".to_owned();
    assert_eq!(world.types(), [api::FAILURE_TARGET]);
}

#[test]
fn a_suspension_resets_the_start() {
    let mut world = World::new("completions: 1");
    assert_eq!(world.status().start_time, Some(clock::time(NOW)));
    world.job.spec.as_mut().unwrap().suspend = Some(true);
    assert_eq!(world.status().start_time, None);
    world.job.spec.as_mut().unwrap().suspend = Some(false);
    assert_eq!(world.status().start_time, Some(clock::time(NOW)));
}

#[test]
fn conditions_of_others_stay() {
    let mut world = World::new("completions: 1");
    let foreign = JobCondition {
        type_: "CustomConditionType".to_owned(),
        status: "True".to_owned(),
        ..JobCondition::default()
    };
    world.job.status = Some(JobStatus {
        conditions: Some(vec![foreign]),
        ..JobStatus::default()
    });
    world.says(api::SUSPENDED, reason::JOB_SUSPENDED);
    assert_eq!(world.types(), ["CustomConditionType", api::SUSPENDED]);
}

#[test]
fn a_success_policy_is_the_reason_also_where_all_succeeded() {
    let mut world = World::new(
        "completions: 1, completionMode: Indexed, successPolicy: {rules: [{succeededCount: 1}]}",
    );
    world.says(api::SUCCESS_CRITERIA_MET, reason::COMPLETIONS_REACHED);
    let conditions = world.status().conditions.unwrap();
    assert_eq!(
        conditions[0].reason.as_deref(),
        Some(reason::SUCCESS_POLICY)
    );
}

#[test]
fn a_refusal_is_reported_once_and_taken_back_when_the_job_runs() {
    let mut world = World::new("completions: 1");
    let status = refused(&world.job, reason::INVALID_ANNOTATION, "x", NOW);
    assert!(status.is_some());
    world.job.status = status;
    assert!(refused(&world.job, reason::INVALID_ANNOTATION, "x", NOW).is_none());
    assert!(refused(&world.job, reason::INVALID_ANNOTATION, "y", NOW).is_some());
    assert!(world.types().is_empty(), "it runs");
}

#[test]
fn a_condition_is_set_on_a_running_job_but_not_on_an_ended_one() {
    let mut world = World::new("");
    world.status();
    world.says(api::QUARANTINED, "ReconcilePanicked");
    let condition = world.recorded.conditions.pop().unwrap();
    world.job.status = with(&world.job, &condition);
    assert!(is_true(&world.job, api::QUARANTINED));
    world.says(api::COMPLETE, "CompletionsReached");
    world.status();
    assert_eq!(with(&world.job, &condition), None);
}
