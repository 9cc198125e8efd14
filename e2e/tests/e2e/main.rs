//! End-to-end tests: the operator as installed by the chart, on a real control plane. Run by
//! `e2e/run.sh`. One program for all of them, since linking each file by itself takes longer
//! than most of the tests.

mod adopted;
mod backups;
mod batch;
mod blocked;
mod clocks;
mod clone_cost;
mod clone_stop;
mod completion;
mod computed_deadlines;
mod deadlines;
mod election;
mod events;
mod example_tasks;
mod failures;
mod feasibility;
mod fence;
mod fence_faults;
mod field_cases;
mod fields;
mod foreign;
mod kueue;
mod lifecycle;
mod nodes;
mod operator;
mod placement;
mod policies;
mod preemption;
mod progress;
mod quarantine;
mod range;
mod recording;
mod rights;
mod shares;
mod stored_state;
mod stragglers;
mod tasks;
mod upgrades;
mod validation;
mod watch_only;
mod words;
mod workflows;
