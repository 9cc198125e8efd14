//! Orders of first attempts: the jobs that each serves with two slots.

use super::{brief, plan_of, product};
use crate::fixtures::{JobBuilder, World, attempt, job, world};
use crate::ids::Tenant;
use crate::memory::Memory;
use crate::policy::{Order, Policy};

/// Long tasks, submitted first.
fn big() -> JobBuilder {
    job("big")
        .tasks(4)
        .deadline_in(500.0)
        .ended_runs([50.0, 50.0])
}

/// Short tasks, submitted later, due later.
fn small() -> JobBuilder {
    let small = job("small").tasks(2).submitted(10.0);
    small.deadline_in(900.0).ended_runs([5.0, 5.0])
}

fn two_slots() -> World {
    world(30.0, 1, 2000)
}

#[track_caller]
fn check(order: Order, world: World, expected: [&str; 2]) {
    let policy = Policy { order, ..product() };
    let (plan, _) = plan_of(&world.build(), &Memory::default(), &policy);
    assert_eq!(brief(&plan), expected, "{order}");
}

const ONE_EACH: [&str; 2] = ["big: original 0", "small: original 0"];

#[test]
fn each_order_serves_whom_it_says() {
    let cluster = || two_slots().job(big()).job(small());
    for order in Order::ALL {
        let expected = match order {
            Order::Fifo | Order::Capacity | Order::EarliestDeadline => {
                ["big: original 0", "big: original 1"]
            }
            // Where slots are short, least slack is by value density.
            Order::LeastSlack | Order::Srpt | Order::Svf | Order::DollyMp | Order::Tetris => {
                ["small: original 0", "small: original 1"]
            }
            Order::Drf => ONE_EACH,
        };
        check(order, cluster(), expected);
    }
}

#[test]
fn capacity_shares_between_tenants() {
    // With one tenant it is FIFO: see above.
    let other = small().with(|job| job.tenant = Tenant::from("other"));
    check(Order::Capacity, two_slots().job(big()).job(other), ONE_EACH);
}

#[test]
fn what_a_job_holds_counts_against_its_share() {
    let running = || big().task(0, [attempt(0).on(0)]);
    // Two slots are left: the newcomer has nothing, then as much as the first.
    let three = world(30.0, 1, 3000).job(running()).job(small());
    check(Order::Drf, three, ["small: original 0", "big: original 1"]);
    let holding = running().task(1, [attempt(0).on(0)]);
    let four = world(30.0, 1, 4000).job(holding).job(small());
    let behind = ["small: original 0", "small: original 1"];
    check(Order::Drf, four, behind);
}

#[test]
fn larger_demands_weigh_more_in_dominant_shares() {
    // One attempt of `big` is worth two of `small`.
    let wide = || big().cpu(2000);
    let cluster = world(30.0, 1, 4000).job(wide()).job(small());
    let policy = Policy {
        order: Order::Drf,
        ..product()
    };
    let (plan, _) = plan_of(&cluster.build(), &Memory::default(), &policy);
    let expected = ["big: original 0", "small: original 0", "small: original 1"];
    assert_eq!(brief(&plan), expected);
}
