//! Orders of first attempts: the jobs that each serves with two slots.

use super::{brief, plan_of, product};
use crate::fixtures::{JobBuilder, World, attempt, job, world};
use crate::ids::Tenant;
use crate::memory::Memory;
use crate::policy::{Order, Policy};
use crate::snapshot::{PhaseTime, Phases};

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
            Order::Drf | Order::Carbyne => ONE_EACH,
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

fn seconds(mean: f64, deviation: f64) -> PhaseTime {
    PhaseTime { mean, deviation }
}

#[test]
fn with_carbyne_a_phase_that_can_wait_lends_its_share() {
    let other_chain = |chain| Phases {
        other_chain: seconds(chain, 0.0),
        ..Phases::default()
    };
    let by_chain = |chain| {
        let phase = big().with(|job| job.phases = Some(other_chain(chain)));
        two_slots().job(phase).job(small())
    };
    // Its tasks take 50 s. Another chain of its run takes a slot's length of 5 s more, or less.
    check(Order::Carbyne, by_chain(54.9), ONE_EACH);
    let lent = ["small: original 0", "small: original 1"];
    check(Order::Carbyne, by_chain(55.0), lent);
    check(Order::Drf, by_chain(55.0), ONE_EACH);
    // What no other job needs it takes back.
    let alone = big().with(|job| job.phases = Some(other_chain(55.0)));
    let own = ["big: original 0", "big: original 1"];
    check(Order::Carbyne, two_slots().job(alone), own);
}

#[test]
fn later_phases_count_in_the_size_of_a_job() {
    let last = ["small: original 0", "small: original 1"];
    let first = ["big: original 0", "big: original 1"];
    let orders = [
        (Order::Srpt, seconds(46.0, 0.0), PhaseTime::default(), first),
        (Order::Srpt, seconds(44.0, 9.0), PhaseTime::default(), last),
        (Order::Svf, PhaseTime::default(), seconds(191.0, 0.0), first),
        (Order::Svf, PhaseTime::default(), seconds(189.0, 9.0), last),
        // θ + ρσ
        (
            Order::DollyMp,
            seconds(200.0, 40.0),
            seconds(500.0, 0.0),
            first,
        ),
    ];
    for (order, after, volume, expected) in orders {
        let own = seconds(7.0, 0.0);
        let phases = Phases {
            own,
            after,
            volume,
            ..Phases::default()
        };
        let early = small().with(|job| job.phases = Some(phases));
        check(order, two_slots().job(big()).job(early), expected);
    }
}

#[test]
fn a_phase_that_nothing_is_known_of_has_its_usual_time() {
    let unknown = |own| {
        let phases = Phases {
            own: seconds(own, 0.0),
            ..Phases::default()
        };
        job("new")
            .tasks(2)
            .submitted(20.0)
            .with(|job| job.phases = Some(phases))
    };
    let of = |own| two_slots().job(small()).job(unknown(own));
    check(Order::Srpt, of(4.0), ["new: original 0", "new: original 1"]);
    check(
        Order::Srpt,
        of(6.0),
        ["small: original 0", "small: original 1"],
    );
}
