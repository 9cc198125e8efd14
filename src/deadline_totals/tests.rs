//! Totals over the lives of several leaders.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::stored::{CLASSES_MAX, NAMESPACES_MAX, OTHER};
use super::*;

fn job<'a>(
    namespace: &'a str,
    class: &'a str,
    outcome: Option<DeadlineOutcome>,
) -> Option<JobWithDeadline<'a>> {
    Some(JobWithDeadline {
        namespace,
        class,
        outcome,
    })
}

const MET: Option<DeadlineOutcome> = Some(DeadlineOutcome::Met);

fn see(totals: &DeadlineTotals, uid: &str, namespace: &str, class: &str) {
    totals
        .lock()
        .see(&uid.into(), false, job(namespace, class, MET));
}

/// Totals of a term that began with this and has listed these ended jobs.
fn begun(stored: StoredTotals, uids: &[&str]) -> DeadlineTotals {
    let totals = DeadlineTotals::default();
    totals.lock().restore(stored);
    for uid in uids {
        see(&totals, uid, "team", "nightly");
    }
    totals.lock().listed();
    totals
}

/// Jobs that met their deadline, by namespace and class.
fn met(totals: &DeadlineTotals) -> BTreeMap<(String, String), u64> {
    let shown = totals.lock().shown().unwrap();
    let met = shown.into_iter();
    met.map(|(namespace, class, counts)| ((namespace, class), counts.of(DeadlineOutcome::Met)))
        .collect()
}

fn sum(totals: &DeadlineTotals) -> Option<u64> {
    let shown = totals.lock().shown()?;
    let all = |counts: &Counts| {
        DeadlineOutcome::ALL
            .map(|outcome| counts.of(outcome))
            .iter()
            .sum::<u64>()
    };
    Some(shown.iter().map(|(.., counts)| all(counts)).sum())
}

#[test]
fn outcomes_are_counted_by_namespace_and_class() {
    use DeadlineOutcome::{Failed, Met, Missed};
    let totals = DeadlineTotals::default();
    totals.lock().restore(StoredTotals::default());
    let see = |uid: &str, namespace, class, outcome| {
        totals
            .lock()
            .see(&uid.into(), false, job(namespace, class, outcome));
    };
    see("a", "x", "nightly", Some(Met));
    see("b", "x", "nightly", Some(Missed));
    see("c", "x", "", Some(Failed));
    see("d", "y", "nightly", Some(Met));
    see("a", "x", "nightly", Some(Met));
    // Its series begins at 0.
    see("e", "z", "", None);
    totals.lock().see(&"f".into(), false, None);
    totals.lock().listed();
    let shown = totals.lock().shown().unwrap();
    let shown: Vec<_> = shown
        .iter()
        .map(|(namespace, class, counts)| {
            (
                &**namespace,
                &**class,
                DeadlineOutcome::ALL.map(|one| counts.of(one)),
            )
        })
        .collect();
    let expected = [
        ("x", "", [0, 0, 1]),
        ("x", "nightly", [1, 1, 0]),
        ("y", "nightly", [1, 0, 0]),
        ("z", "", [0, 0, 0]),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn nothing_is_shown_before_both_counts_are_complete() {
    let totals = DeadlineTotals::default();
    see(&totals, "a", "team", "");
    totals.lock().listed();
    assert_eq!(totals.lock().shown(), None, "the stored totals are unknown");
    totals.lock().restore(StoredTotals::default());
    assert_eq!(sum(&totals), Some(1));
    let totals = DeadlineTotals::default();
    totals.lock().restore(StoredTotals::default());
    see(&totals, "a", "team", "");
    assert_eq!(totals.lock().shown(), None, "the list is not complete");
}

#[test]
fn a_job_whose_deletion_began_is_counted_once() {
    let totals = begun(StoredTotals::default(), &["a"]);
    totals
        .lock()
        .see(&"a".into(), true, job("team", "nightly", MET));
    totals.lock().gone("a");
    assert_eq!(sum(&totals), Some(1));
    // The next leader finds it in its list, with a deletion that has begun.
    let next = DeadlineTotals::default();
    next.lock().restore(totals.lock().to_store());
    next.lock()
        .see(&"a".into(), true, job("team", "nightly", MET));
    next.lock().listed();
    assert_eq!(sum(&next), Some(1));
}

#[test]
fn the_order_of_list_and_stored_totals_does_not_matter() {
    let totals = begun(StoredTotals::default(), &["a", "b"]);
    totals.lock().gone("a");
    let written = totals.lock().to_store();
    let next = begun(written.clone(), &["b"]);
    assert_eq!(
        (sum(&next), next.lock().to_store()),
        (Some(2), written.clone())
    );
    let next = DeadlineTotals::default();
    see(&next, "b", "team", "nightly");
    see(&next, "c", "team", "nightly");
    next.lock().gone("c");
    next.lock().listed();
    next.lock().restore(written);
    assert_eq!(sum(&next), Some(3));
}

#[test]
fn series_are_bounded_and_the_rest_is_other() {
    let totals = begun(StoredTotals::default(), &[]);
    for number in 0..NAMESPACES_MAX + 10 {
        let namespace = format!("team-{number:03}");
        see(&totals, &namespace, &namespace, "");
    }
    for number in 0..CLASSES_MAX + 5 {
        let class = format!("class-{number:02}");
        see(&totals, &class, "team-000", &class);
    }
    let check = |totals: &DeadlineTotals| {
        let met = met(totals);
        let of = |namespace: &str, class: &str| met.get(&(namespace.to_owned(), class.to_owned()));
        assert_eq!(met.len(), NAMESPACES_MAX + CLASSES_MAX + 1);
        assert_eq!(of(OTHER, OTHER), Some(&10));
        assert_eq!(of("team-200", ""), None);
        // One of its own classes is the empty one.
        assert_eq!(of("team-000", "class-06"), Some(&1));
        assert_eq!(of("team-000", "class-07"), None);
        assert_eq!(of("team-000", OTHER), Some(&6));
    };
    check(&totals);
    // A total that was shown under a name stays there in the next term.
    for number in 0..NAMESPACES_MAX + 10 {
        totals.lock().gone(&format!("team-{number:03}"));
    }
    let stored = totals.lock().to_store();
    assert!(stored.is_sound());
    let next = DeadlineTotals::default();
    for number in (0..CLASSES_MAX + 5).rev() {
        let class = format!("class-{number:02}");
        see(&next, &class, "team-000", &class);
    }
    next.lock().restore(stored);
    next.lock().listed();
    check(&next);
}

#[test]
fn the_longest_names_are_stored_and_shown() {
    let name = "x".repeat(63);
    let totals = begun(StoredTotals::default(), &[]);
    see(&totals, "a", &name, &name);
    totals.lock().gone("a");
    let stored = totals.lock().to_store();
    assert!(stored.is_sound());
    let expected = [((name.clone(), name), 1)];
    assert_eq!(met(&begun(stored, &[])), expected.into());
}

/// What may happen to a job, to the leader, and to the stored state.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Create,
    End(usize, usize),
    Delete(usize),
    /// The watch shows the oldest changes.
    Watch(usize),
    Write,
    /// The leader dies. The next one reads the state before its list, or after.
    Crash(bool),
}

fn turn() -> impl Strategy<Value = Turn> {
    let number = any::<usize>;
    prop_oneof![
        3 => Just(Turn::Create),
        4 => (number(), 0..3_usize).prop_map(|(job, outcome)| Turn::End(job, outcome)),
        4 => number().prop_map(Turn::Delete),
        4 => (1..4_usize).prop_map(Turn::Watch),
        3 => Just(Turn::Write),
        1 => any::<bool>().prop_map(Turn::Crash),
    ]
}

/// The jobs in the apiserver, the stored state, and the leader.
#[derive(Default)]
struct World {
    /// Outcomes of the jobs that exist, by uid.
    jobs: BTreeMap<String, Option<DeadlineOutcome>>,
    /// Changes that the watch has not shown: a job with its outcome, or a job that is gone.
    unseen: VecDeque<(String, Option<Option<DeadlineOutcome>>)>,
    stored: StoredTotals,
    leader: DeadlineTotals,
    created: usize,
    ended: u64,
    /// Ended jobs that are deleted and that no write has counted.
    at_risk: Vec<String>,
    /// Ended jobs that leaders have lost.
    lost: u64,
    shown: u64,
}

impl World {
    fn show(&self, uid: &str, outcome: Option<DeadlineOutcome>) {
        self.leader
            .lock()
            .see(&uid.into(), false, job("team", "", outcome));
    }

    fn pick(&self, number: usize) -> Option<String> {
        let number = number.checked_rem(self.jobs.len())?;
        self.jobs.keys().nth(number).cloned()
    }

    fn watch(&mut self) {
        match self.unseen.pop_front() {
            Some((uid, Some(outcome))) => self.show(&uid, outcome),
            Some((uid, None)) => self.leader.lock().gone(&uid),
            None => {}
        }
    }

    fn delete(&mut self, uid: String) -> Option<DeadlineOutcome> {
        self.unseen.push_back((uid.clone(), None));
        self.jobs.remove(&uid).flatten()
    }

    fn list(&mut self) {
        self.unseen.clear();
        for (uid, outcome) in &self.jobs {
            self.show(uid, *outcome);
        }
        self.leader.lock().listed();
    }

    fn crash(&mut self, reads_first: bool) {
        let lost = self.at_risk.drain(..).count() as u64;
        self.lost += lost;
        // What no scrape has seen is no loss to one.
        self.shown = self.shown.saturating_sub(lost);
        self.leader = DeadlineTotals::default();
        if reads_first {
            self.leader.lock().restore(self.stored.clone());
        }
        self.list();
        self.leader.lock().restore(self.stored.clone());
    }

    fn write(&mut self) {
        self.stored = self.leader.lock().to_store();
        assert!(self.stored.is_sound());
        let unseen = &self.unseen;
        let is_unseen = |uid: &String| unseen.iter().any(|(one, _)| one == uid);
        self.at_risk.retain(is_unseen);
    }

    fn take(&mut self, turn: Turn) {
        match turn {
            Turn::Create => {
                let uid = format!("uid-{:03}", self.created);
                self.created += 1;
                self.unseen.push_back((uid.clone(), Some(None)));
                self.jobs.insert(uid, None);
            }
            Turn::End(job, outcome) => {
                let Some(uid) = self.pick(job).filter(|uid| self.jobs[uid].is_none()) else {
                    return;
                };
                let outcome = Some(DeadlineOutcome::ALL[outcome]);
                self.ended += 1;
                self.unseen.push_back((uid.clone(), Some(outcome)));
                self.jobs.insert(uid, outcome);
            }
            Turn::Delete(job) => {
                if let Some(uid) = self.pick(job)
                    && self.delete(uid.clone()).is_some()
                {
                    self.at_risk.push(uid);
                }
            }
            Turn::Watch(times) => (0..times).for_each(|_| self.watch()),
            Turn::Write => self.write(),
            Turn::Crash(reads_first) => self.crash(reads_first),
        }
    }

    fn check(&mut self) {
        let shown = sum(&self.leader).unwrap();
        assert!(shown >= self.shown, "{shown} after {}", self.shown);
        assert!(shown <= self.ended, "{shown} of {}", self.ended);
        self.shown = shown;
    }
}

proptest! {
    #[test]
    fn a_total_never_falls_and_counts_no_job_twice(turns in prop::collection::vec(turn(), 1..120)) {
        let mut world = World::default();
        world.crash(true);
        for turn in turns {
            world.take(turn);
            world.check();
        }
        while !world.unseen.is_empty() {
            world.watch();
        }
        world.check();
        prop_assert!(world.shown + world.lost >= world.ended);
        // Without another deletion the next leader shows the same.
        world.write();
        let shown = world.shown;
        world.crash(false);
        prop_assert_eq!(sum(&world.leader), Some(shown));
    }
}
