//! The guarantees that a policy has, and the limits that it cannot evade.

use super::*;
use crate::fixtures::{attempt, brief, four_nodes, job, plan_of, uneven, world};
use crate::ids::JobKey;
use crate::memory::Durable;
use crate::plan::Finding;
use crate::policy::{Policy, Speculation};
use crate::round::clones::{Ask, MODES};

/// Ranks jobs by a given slack, counts its passes, and requests as many clones as it can.
#[derive(Debug, Clone, PartialEq)]
struct Greedy {
    urgent: &'static str,
    most: u32,
    /// Whether the order is reversed when the jobs are compared.
    reverses: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Passes(u32);

impl Remembered for Passes {
    fn write(&self) -> PolicyState {
        PolicyState {
            durable: self.0.to_string(),
            transient: String::new(),
        }
    }

    fn read(state: &PolicyState) -> Self {
        Self(state.durable.parse().unwrap_or(0))
    }
}

impl PolicyRule for Greedy {
    type Belief = u32;
    type State = Passes;
    type Place = u32;

    fn name(&self) -> &'static str {
        "greedy"
    }

    fn max_clones(&self) -> u32 {
        self.most
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Passes>) -> Judgement<u32> {
        let is_urgent = &*job.job.key.0 == self.urgent;
        Judgement {
            acts: true,
            next: None,
            rank: Some((false, if is_urgent { -1 } else { 1 })),
            belief: recall.state.0,
        }
    }

    fn arrange(&self, jobs: &[Summary<'_, u32>], _: &Comparison<'_>) -> Vec<Arranged<u32>> {
        let reversed = |rank: (bool, i64)| (rank.0, -rank.1);
        let arranged = jobs.iter().map(|job| Arranged {
            rank: job.rank.filter(|_| self.reverses).map(reversed),
            place: job.belief + 1,
        });
        arranged.collect()
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        for position in 0..desk.jobs().len() {
            let passes = desk.place(position).copied().unwrap_or(0);
            if let Some(state) = desk.state_mut(position) {
                *state = Passes(passes);
            }
        }
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        for mode in MODES {
            for mut job in desk.clone_jobs(mode, Ask::blind(self.most), |_, _, _| true) {
                for at in 0..job.tasks.len() {
                    while desk.request(&mut job, at, Finding::Copies { copies: 9 }) {}
                }
            }
        }
    }
}

fn policy(urgent: &'static str, most: u32) -> Policy {
    Policy {
        speculation: Speculation::new(Greedy {
            urgent,
            most,
            reverses: false,
        }),
        surge_max: 0,
        ..Policy::default()
    }
}

#[test]
fn a_rank_of_the_policy_orders_first_attempts() {
    let waiting = |key| job(key).tasks(1).deadline_in(200.0);
    for urgent in ["a", "b"] {
        let snapshot = world(30.0, 1, 1000).job(waiting("a")).job(waiting("b"));
        let (plan, _) = plan_of(&snapshot.build(), &Memory::default(), &policy(urgent, 0));
        assert_eq!(brief(&plan), [format!("{urgent}: original 0")]);
    }
}

#[test]
fn comparing_the_jobs_may_change_their_order() {
    let waiting = |key| job(key).tasks(1).deadline_in(200.0);
    let snapshot = world(30.0, 1, 1000).job(waiting("a")).job(waiting("b"));
    let reversing = Policy {
        speculation: Speculation::new(Greedy {
            urgent: "a",
            most: 0,
            reverses: true,
        }),
        ..policy("a", 0)
    };
    let (plan, _) = plan_of(&snapshot.build(), &Memory::default(), &reversing);
    assert_eq!(brief(&plan), ["b: original 0"]);
}

#[test]
fn what_is_remembered_comes_back_in_the_next_pass() {
    let snapshot = four_nodes().job(uneven()).build();
    let policy = policy("a", 0);
    let (_, first) = plan_of(&snapshot, &Memory::default(), &policy);
    let (_, second) = plan_of(&snapshot, &first, &policy);
    let durable: Vec<_> = second.durable_states().collect();
    assert_eq!(durable, [(&JobKey::from("a"), "2")]);
    // The durable part of the memory suffices after a failover.
    let survivors = second.durable_states();
    let survivors = survivors.map(|(key, state)| (key.clone(), state.to_owned()));
    let restored = Memory::restored(
        Durable::default(),
        Vec::new(),
        survivors.collect::<Vec<_>>(),
    );
    let (_, third) = plan_of(&snapshot, &restored, &policy);
    assert_eq!(third.state(&JobKey::from("a")).unwrap().durable, "3");
}

#[test]
fn requests_are_granted_within_the_limits_alone() {
    let clones = |most, world: crate::fixtures::World| {
        let (plan, _) = plan_of(&world.build(), &Memory::default(), &policy("a", most));
        let actions = brief(&plan).into_iter();
        actions.filter(|action| action.contains("clone")).count()
    };
    let late = |nodes| {
        let running = job("a").tasks(1).deadline_in(500.0);
        world(30.0, nodes, 1000).job(running.task(0, [attempt(0).on(0).progress(0.1, 29.0)]))
    };
    // The policy's bound, the job's bound, capacity.
    assert_eq!(clones(2, late(9)), 2);
    assert_eq!(clones(20, late(9)), 5);
    assert_eq!(clones(20, late(3)), 2);
}
