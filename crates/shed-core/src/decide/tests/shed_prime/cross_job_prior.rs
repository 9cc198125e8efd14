//! What is assumed of a job without times of its own: by the other jobs of its tenant, and by other tenants.

use super::{
    Moves, NOTHING, World, attempt, check, decided, job, report, slots, steady, table, world,
};
use crate::fixtures::JobBuilder;
use crate::snapshot::NodeIndex;

/// A running job of the tenant, whose tasks take this share of the time that it was given.
fn known(tenant: &str, share: f64) -> JobBuilder {
    let job = job("known").submitted(29.0).tasks(1).tenant(tenant);
    let job = steady(job.deadline_in(20.0 / share), 20.0);
    job.task(0, [attempt(0).launched(29.0).on(0)])
}

/// Next to these jobs, two jobs without any times wait for one slot. The first has 70 of its 100 s left. The
/// second has all but 10 s of its time left. Given that time, it is served first in one row and last in the other.
///
/// If tasks take a share s of the time that jobs were given, both have the same slack if the second was given
/// (80 − 100 s) / (1 − s).
#[track_caller]
fn assumes(jobs: &[JobBuilder], [first, last]: [f64; 2]) {
    let cluster = |given| {
        let a = job("a").tasks(1).deadline_in(100.0);
        let b = job("b").tasks(1).submitted(20.0).deadline_in(given);
        let world = slots(1 + jobs.len()).job(a).job(b);
        let others = jobs.iter().cloned().enumerate();
        let others = others.map(|(at, job)| {
            job.with(|job| {
                job.key = format!("known-{at}").as_str().into();
                job.tasks[0].attempts[0].node = Some(NodeIndex(at + 1));
            })
        });
        others.fold(world, World::job)
    };
    let rows: [(f64, Moves<'_>); 2] = [(first, &["b: original 0"]), (last, &["a: original 0"])];
    table("shed-prime{weigh=off,max_clones=0}", cluster, &rows);
}

#[test]
fn a_job_is_assumed_to_take_the_usual_share_of_its_time() {
    // Half while nothing is known, which also counts as one job.
    assumes(&[], [59.0, 61.0]);
    // √(0.05 · ½) = 0.158, and with two such jobs 0.108.
    let own = || known("default", 0.05);
    assumes(&[own()], [75.8, 76.6]);
    assumes(&[own(), own()], [77.1, 77.9]);
    // All jobs of another tenant count as one: √(0.2 · ½) = 0.316.
    let foreign = || known("b", 0.2);
    assumes(&[foreign()], [70.3, 71.1]);
    assumes(&[foreign(), foreign(), foreign()], [70.3, 71.1]);
    // All other tenants together count as one job, too.
    assumes(&[foreign(), known("c", 0.2)], [70.3, 71.1]);
    // At most a factor of 4 away from one half: √(0.125 · ½) = 0.25.
    assumes(&[known("b", 0.01)], [72.9, 73.8]);
    // What another tenant lies about counts no more than that: ∛(0.05 · 0.125 · ½) = 0.146.
    let lie = || known("b", 0.0001);
    assumes(&[own(), lie(), lie()], [76.2, 77.0]);
}

/// A job without any times, and as many others as `tenants` names.
pub(super) fn unknown(tenants: &[&str], given: f64) -> World {
    let launched = attempt(0).launched(29.5).on(1);
    let d = job("d").submitted(29.0).tasks(1).deadline_in(given);
    let world = world(30.0, 3, 4000).launch_overhead(20.0);
    let known = tenants.iter().enumerate().map(|(number, tenant)| {
        // It reports for the first time 27 s after its launch.
        let half = attempt(0).launched(1.0).on(0).progress(0.5, 29.0);
        let half = half.first_report(0.5 * 27.0 / 28.0, 28.0);
        let job = job(&format!("known-{number}")).submitted(1.0);
        let job = job.tasks(1).deadline_in(100.0).tenant(tenant);
        job.task(0, [half]).ended_runs([40.0, 60.0, 60.0, 90.0])
    });
    known.fold(world.job(d.task(0, [launched])), World::job)
}

pub(super) const HEDGED: Moves<'static> = &["d: clone 0"];

pub(super) const THREE: &[&str] = &["default"; 3];

#[test]
fn a_distribution_is_assumed_from_three_jobs_on() {
    let others = |tenants| unknown(tenants, 80.0);
    let rows: [(&[&str], Moves<'_>); 4] = [
        (THREE, HEDGED),
        (&["default"; 2], NOTHING),
        // All other tenants together count as one job, so strangers alone cause no clone.
        (&["b", "c", "d"], NOTHING),
        (&["default", "default", "b"], HEDGED),
    ];
    table("shed-prime", others, &rows);
    table("shed-prime{pool=off}", others, &[(THREE, NOTHING)]);
    // It is never reported.
    let plan = decided("shed-prime", unknown(THREE, 80.0));
    assert_eq!(report(&plan, "d").pocd_before, None);
}

#[test]
fn an_unknown_job_is_hedged_if_a_later_clone_would_be_late() {
    // There is time for a clone once the attempt has reported. Its report comes 20 s after its launch, the mean over all
    // jobs. The other jobs' share of the time given, 0.27, is longer.
    check("shed-prime", unknown(THREE, 1000.0), NOTHING);
    let left = |given| unknown(THREE, given);
    table("shed-prime", left, &[(88.5, HEDGED), (90.5, NOTHING)]);
}
