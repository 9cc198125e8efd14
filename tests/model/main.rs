//! The step, model-checked: every order of the moves of one job's operator, its kubelets, its
//! planner and the faults, with the shipped functions as transition. docs/develop/model.md says what is
//! in the model, what is not, and why one job is enough.

mod invariants;
mod model;
mod operator;
mod rest;
mod walks;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use shed_core::snapshot::OnMiss;
use stateright::report::{ReportData, ReportDiscovery, Reporter};
use stateright::{Checker, Model as _};

use self::model::{Model, Size, UNDISTURBED};
use self::world::Budget;

/// Prints a line every half minute. The assertion after it prints the discoveries.
#[derive(Default)]
struct ProgressLines {
    printed: u64,
}

impl Reporter<Model> for ProgressLines {
    fn report_checking(&mut self, data: ReportData) {
        let (states, half_minutes) = (data.unique_states, data.duration.as_secs() / 30);
        if half_minutes > self.printed {
            self.printed = half_minutes;
            println!("{states} states after {} s", data.duration.as_secs());
        }
    }

    fn report_discoveries(&mut self, _: &Model, _: BTreeMap<&'static str, ReportDiscovery<Model>>) {
    }

    /// The check waits this long for its reporter to end.
    fn delay(&self) -> Duration {
        Duration::from_millis(100)
    }
}

/// Explores everything and prints how much that was.
#[track_caller]
fn explore(size: Size) {
    let checker = Model::new(size).checker().threads(2).spawn_dfs();
    let checker = checker.join_and_report(&mut ProgressLines::default());
    println!(
        "{size:?}: {} states, depth {}",
        checker.unique_state_count(),
        checker.max_depth()
    );
    checker.assert_properties();
}

const ONE_TASK: Size = Size {
    tasks: 1,
    attempts: 2,
    backoff_limit_per_index: 1,
    on_miss: OnMiss::Fail,
    budget: UNDISTURBED,
};

#[test]
fn one_task_with_a_crash_and_a_stale_view() {
    explore(Size {
        budget: Budget {
            crashes: 1,
            stale: 1,
            ..UNDISTURBED
        },
        ..ONE_TASK
    });
}

#[test]
fn one_task_whose_passes_wait_while_a_stale_view_catches_up() {
    explore(Size {
        budget: Budget {
            stale: 1,
            waits: 1,
            ..UNDISTURBED
        },
        ..ONE_TASK
    });
}

#[test]
fn one_task_with_a_lost_answer_and_a_stale_view() {
    explore(Size {
        budget: Budget {
            lost: 1,
            stale: 1,
            ..UNDISTURBED
        },
        ..ONE_TASK
    });
}

#[test]
fn one_task_that_is_suspended_and_resumed_with_a_crash() {
    explore(Size {
        budget: Budget {
            crashes: 1,
            suspends: 2,
            ..UNDISTURBED
        },
        ..ONE_TASK
    });
}

#[test]
fn one_task_past_its_deadline_with_a_crash_and_a_disruption() {
    for on_miss in [OnMiss::Fail, OnMiss::Continue] {
        explore(Size {
            budget: Budget {
                crashes: 1,
                deadlines: 1,
                disruptions: 1,
                ..UNDISTURBED
            },
            on_miss,
            ..ONE_TASK
        });
    }
}

#[test]
fn two_tasks_of_one_attempt_with_a_crash_and_a_stale_view() {
    explore(Size {
        tasks: 2,
        attempts: 1,
        backoff_limit_per_index: 0,
        on_miss: OnMiss::Fail,
        budget: Budget {
            crashes: 1,
            stale: 1,
            ..UNDISTURBED
        },
    });
}

#[test]
#[ignore = "minutes: make model"]
fn one_task_of_three_attempts_with_a_crash_and_a_stale_view() {
    explore(Size {
        attempts: 3,
        budget: Budget {
            crashes: 1,
            stale: 1,
            ..UNDISTURBED
        },
        ..ONE_TASK
    });
}

const TWO_TASKS: Size = Size {
    tasks: 2,
    attempts: 2,
    backoff_limit_per_index: 0,
    on_miss: OnMiss::Fail,
    budget: UNDISTURBED,
};

#[test]
#[ignore = "half an hour: make model"]
fn two_tasks_of_two_attempts_with_a_crash_and_a_stale_read() {
    explore(Size {
        budget: Budget {
            crashes: 1,
            stale_reads: 1,
            ..UNDISTURBED
        },
        ..TWO_TASKS
    });
}
