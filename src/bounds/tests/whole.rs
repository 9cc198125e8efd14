//! Jobs of any size driven through the real step and status. After each step the object is written and
//! read back, and must stay within its budget.

use shed_core::resources::Resources;
use shed_core::snapshot::Progress;

use super::*;
use crate::cluster::pod::{AttemptFacts, AttemptId, JobPods, PodFacts, Stage};
use crate::cluster::pod_end::EndFacts;
use crate::context::backoff::Blocked;
use crate::context::pending_tasks::PendingTasks;
use crate::job::facts::{self, Reported, Trace, Traces};
use crate::job::view::JobView;
use crate::reconcile::status;
use crate::reconcile::step::{self, step};

/// A job with a ledger, pods and reports.
struct Driven {
    owner: DeadlineJob,
    job: ValidatedJob,
    ledger: Ledger,
    pods: JobPods,
    traces: Traces,
    reports: BTreeMap<String, Reported>,
    now: Instant,
    facts_as_of: Instant,
    /// The largest object that was written.
    largest: usize,
    undurable: usize,
}

impl Driven {
    /// With a specification of this many bytes.
    fn new(completions: u32, spec_bytes: usize, change: &str) -> Self {
        let change = format!("{{completions: {completions}, backoffLimitPerIndex: 0{change}}}");
        let owner = padded(fixtures::job(&change), spec_bytes);
        let job = validate(&owner).unwrap();
        assert!(job.spec_bytes >= spec_bytes);
        Self {
            owner,
            job,
            ledger: Ledger::default(),
            pods: JobPods::new(),
            traces: Traces::new(),
            reports: BTreeMap::new(),
            now: Instant(1_000),
            facts_as_of: Instant(0),
            largest: 0,
            undurable: 0,
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(&self.owner, &self.job, node_bytes(), 0)
    }

    fn step(&mut self, slice: &[Move]) {
        let (job, ledger) = (Arc::new(self.job.clone()), self.ledger.clone());
        let view = JobView {
            pods: self.pods.clone(),
            traces: self.traces.clone(),
            reports: self.reports.clone(),
            facts_as_of: self.facts_as_of,
            ..JobView::new(job, ledger, self.now, self.now)
        };
        let facts = facts::facts(&view);
        let bounds = self.bounds();
        let fitting = bounds.fitting(&self.ledger, slice);
        let step = step(step::Input {
            view: &view,
            facts: &facts,
            slice: fitting.as_deref().unwrap_or(slice),
            asking: &BTreeMap::new(),
            placements: &BTreeMap::new(),
            bounds: Some(bounds),
            learned: Default::default(),
        });
        self.undurable = step.undurable.unwrap_or(self.undurable);
        self.write(&step.ledger, step.undurable);
        self.now = self.now.plus(Span::from_seconds(1));
    }

    fn write(&mut self, ledger: &Ledger, undurable: Option<usize>) {
        let old = self.owner.status.clone().unwrap_or_default();
        let blocked = Blocked {
            reason: crate::api::reason::UNSCHEDULABLE,
            message: "\u{1}".repeat(2000),
        };
        let mut status = status::render(status::Input {
            unstarted: None,
            uncommitted: true,
            job: &self.job,
            ledger,
            deadline: self.job.deadline_by(ledger),
            history: None,
            old: &old,
            report: None,
            calibrated: Some(0.5),
            workflow: None,
            observed: None,
            blocked: Some(&blocked),
            placeable: false,
            is_queued: false,
            gate: None,
            running: false,
            placed: true,
            ready: 0,
            unreachable: (1, 1),
            awaited: None,
            unshared: Some(&blocked.message),
            undurable,
            facts_as_of: self.facts_as_of,
            held_back: false,
            waiting: &PendingTasks::No,
            clone_stop: None,
            reported: None,
            last_write: None,
            now: self.now,
        });
        if let Some(ledger) = &mut status.ledger {
            ledger.revision += 1;
        }
        self.owner.status = Some(status);
        let text = serde_json::to_string(&self.owner).unwrap();
        assert!(text.len() <= OBJECT_MAX, "{}", text.len());
        self.largest = self.largest.max(text.len());
        self.owner = serde_json::from_str(&text).unwrap();
        let status = self.owner.status.as_ref();
        self.ledger = Ledger::from_status(status).unwrap();
    }

    /// Launches as many of these tasks as fit, and returns their number; their pods run.
    fn start(&mut self, tasks: impl Iterator<Item = u32>, kind: AttemptKind) -> usize {
        let counts = |ledger: &Ledger| {
            ledger.counts.originals + ledger.counts.clones + ledger.counts.retries
        };
        let before = counts(&self.ledger);
        let launches = tasks.map(|task| {
            let entry = self.ledger.tasks.get(&task);
            let durable = entry.and_then(|entry| entry.resume.as_deref());
            Move::Launch(Launch {
                resume: durable.cloned(),
                ..launching(task, kind, None)
            })
        });
        let launches: Vec<Move> = launches.collect();
        self.step(&launches);
        for id in self.live() {
            self.show(id, Stage::Running);
        }
        usize::try_from(counts(&self.ledger) - before).unwrap()
    }

    fn live(&self) -> Vec<AttemptId> {
        let attempts = self.ledger.tasks.values().flat_map(|task| {
            let live = task.attempts.iter().filter(|one| one.kill.is_none());
            live.map(|attempt| (task.index, attempt.number))
        });
        attempts.collect()
    }

    fn show(&mut self, id: AttemptId, stage: Stage) {
        let terminal = !matches!(stage, Stage::Running);
        let attempt = AttemptFacts {
            task: id.0,
            number: id.1,
            tracked: true,
            deleting: false,
            deleted: None,
            due: None,
            ip: None,
            stage,
            started: Some(self.now),
            begun: true,
            reached: None,
            failure: None,
            exited_with_0: false,
            crash_loop: None,
            ready: false,
            restarts: 0,
            is_gone: terminal,
            end: EndFacts::default(),
            annotations: None,
        };
        let pod = PodFacts {
            namespace: Arc::clone(&self.job.namespace),
            name: format!("pod-{}-{}", id.0, id.1).into(),
            uid: uid(id),
            version: 0,
            node: Some(Arc::from("node-1")),
            requests: Resources::default().into(),
            scheduling: crate::cluster::scheduling::Scheduling::default(),
            terminal,
            is_leaving: false,
            identity: crate::cluster::identity::Identity::default(),
            attempt: Some(attempt.into()),
            belongs: None,
        };
        self.pods.insert(id, Arc::new(pod));
        let seen = Trace {
            seen: true,
            ..Trace::default()
        };
        self.traces.insert(id, seen);
    }

    /// All that live end: well, or with a failure.
    fn end(&mut self, well: impl Fn(u32) -> bool) {
        let finished = self.now;
        for id in self.live() {
            let stage = match well(id.0) {
                true => Stage::Succeeded { finished },
                false => Stage::Failed {
                    finished,
                    disrupted: false,
                },
            };
            self.show(id, stage);
        }
        self.step(&[]);
        self.pods.clear();
    }

    /// Each of the tasks is run to its end, as many at a time as fit, and 10 000 at most.
    fn run(&mut self, tasks: impl Iterator<Item = u32>, well: impl Fn(u32) -> bool) {
        let tasks: Vec<u32> = tasks.collect();
        let mut next = 0;
        while next < tasks.len() {
            let last = tasks.len().min(next + LIVE);
            let started = self.start(tasks[next..last].iter().copied(), AttemptKind::Original);
            assert!(started > 0, "nothing fits any more");
            next += started;
            self.end(&well);
        }
    }

    fn suspend(&mut self, suspend: bool) {
        self.owner.spec.suspend = suspend;
        self.job = validate(&self.owner).unwrap();
        self.step(&[]);
    }

    /// The killed attempts are gone.
    fn go(&mut self) {
        assert_eq!(self.live(), []);
        self.pods.clear();
        self.step(&[]);
    }

    /// Report of every attempt.
    fn report(&mut self, bytes: usize) {
        for (task, number) in self.live() {
            let share = 0.1 + f64::from(task) / 1e6 + f64::from(number) / 10.0;
            let reported = Reported {
                progress: Progress {
                    first_at: self.now,
                    first: share,
                    last_at: self.now,
                    last: share,
                },
                checkpoint: Some(ResumePoint {
                    progress: share,
                    checkpoint: format!("{task:0bytes$}").as_str().into(),
                }),
                units: None,
            };
            self.reports.insert(uid((task, number)), reported);
        }
    }

    fn ending(&self) -> Option<(Conclusion, bool)> {
        Some((self.ledger.ending?, self.ledger.finished))
    }
}

/// Most that are live at a time.
const LIVE: usize = 10_000;
const TASKS: u32 = 100_000;

fn uid(id: AttemptId) -> String {
    format!("uid-{}-{}", id.0, id.1)
}

/// How many of 10 000 tasks may live at a time with a specification of this many bytes, if no two
/// of the 100 000 indexes in the lists may be adjacent.
const SPECS: [(usize, usize); 3] = [(0, LIVE), (200 * 1024, 5_700), (size::SPEC_MAX, 4_100)];

#[test]
fn a_job_of_100_000_tasks_is_suspended_and_resumed() {
    for (spec, least) in SPECS {
        let mut driven = Driven::new(TASKS, spec, "");
        let first = 0..LIVE as u32;
        let started = driven.start(first.clone(), AttemptKind::Original);
        assert!(started >= least, "{started} next to {spec} bytes");
        driven.suspend(true);
        assert_eq!(driven.live(), []);
        driven.go();
        assert_eq!(driven.ledger.counts.superseded, started as i64);
        driven.suspend(false);
        assert_eq!(driven.start(first, AttemptKind::Retry), started);
    }
}

#[test]
fn a_job_of_100_000_tasks_fails_with_scattered_indexes() {
    let mut driven = Driven::new(TASKS, 200 * 1024, "");
    driven.run(0..TASKS, |task| task % 2 == 1);
    driven.step(&[]);
    assert_eq!(driven.ending(), Some((Conclusion::FailedIndexes, true)));
    let status = driven.owner.status.as_ref().unwrap();
    assert_eq!((status.succeeded, status.failed), (50_000, 50_000));
    // Neither list is short.
    let lists = status.completed_indexes.len() + status.failed_indexes.len();
    assert!(driven.largest > 200 * 1024 + lists && lists > 580_000);
}

#[test]
fn a_job_of_100_000_tasks_is_stopped_at_its_deadline() {
    let mut driven = Driven::new(TASKS, 200 * 1024, "");
    // Half of the ended tasks failed, and no two indexes of either kind are neighbors.
    driven.run((0..40_000).chain(50_000..80_000), |task| task % 2 == 1);
    assert!(driven.start(80_000..90_000, AttemptKind::Original) > 5_600);
    driven.now = Instant(700_000);
    driven.facts_as_of = Instant(699_000);
    driven.step(&[]);
    let deadline = Conclusion::DeadlineExceeded;
    assert_eq!(driven.ending(), Some((deadline, false)));
    assert_eq!(driven.live(), []);
    driven.go();
    assert_eq!(driven.ending(), Some((deadline, true)));
}

#[test]
fn a_job_of_100_000_tasks_is_completed() {
    let mut driven = Driven::new(TASKS, 200 * 1024, "");
    // The list is longest when every other task is done.
    let odd = (1..TASKS).step_by(2);
    driven.run(odd.chain((0..TASKS).step_by(2)), |_| true);
    driven.step(&[]);
    assert_eq!(driven.ending(), Some((Conclusion::Complete, true)));
}

/// 5 000 tasks whose every attempt reports a checkpoint of 64 bytes; a third has a clone.
#[test]
fn a_job_with_clones_is_suspended_resumed_and_stopped() {
    let resumes = ", progress: {file: {}}, resume: Checkpoint";
    let mut driven = Driven::new(5_000, 200 * 1024, resumes);
    assert_eq!(driven.start(0..5_000, AttemptKind::Original), 5_000);
    driven.report(64);
    let third = || (0..5_000).step_by(3);
    let clones = driven.start(third(), AttemptKind::Clone);
    assert_eq!(clones, third().count());
    driven.report(64);
    driven.step(&[]);
    driven.suspend(true);
    driven.go();
    let durable = driven.ledger.tasks.values();
    let durable = durable.filter(|task| task.resume.is_some()).count();
    assert_eq!(durable + driven.undurable, 5_000);
    assert!(durable > 3_000, "{durable}");
    driven.suspend(false);
    assert_eq!(driven.start(0..5_000, AttemptKind::Retry), 5_000);
    // If the newest checkpoint does not fit, the attempt's start point stays.
    driven.report(64);
    driven.now = Instant(700_000);
    driven.facts_as_of = Instant(699_000);
    driven.step(&[]);
    assert_eq!(driven.ending(), Some((Conclusion::DeadlineExceeded, false)));
    let begun = driven.ledger.tasks.values();
    let begun = begun.filter(|task| task.resume.is_none() && task.attempts[0].resume.is_some());
    assert_eq!(begun.count(), 0);
    driven.go();
    assert!(driven.ledger.finished);
}

/// Checkpoints of 256 bytes; each byte takes six in JSON.
#[test]
fn checkpoints_that_do_not_fit_do_not_prevent_stops() {
    let resumes = ", progress: {file: {}}, resume: Checkpoint";
    let mut driven = Driven::new(5_000, 200 * 1024, resumes);
    driven.start(0..5_000, AttemptKind::Original);
    driven.report(64);
    for task in 0..1_000 {
        let reported = driven.reports.get_mut(&uid((task, 0))).unwrap();
        let point = reported.checkpoint.as_mut().unwrap();
        point.checkpoint = "\u{1}".repeat(256).into();
    }
    // They are written with a write that happens anyway.
    let finished = driven.now;
    driven.show((4_999, 0), Stage::Succeeded { finished });
    driven.step(&[]);
    assert!(driven.undurable > 500, "{}", driven.undurable);
    let reported = driven.owner.status.as_ref().unwrap().conditions.iter();
    let reported = reported.filter(|one| one.type_ == crate::api::CHECKPOINTS_NOT_DURABLE);
    assert_eq!(reported.count(), 1);
    driven.suspend(true);
    driven.go();
    assert_eq!(driven.ledger.counts.superseded, 4_999);
}

/// Attempts that are stopped one by one, and whose pods stay.
#[test]
fn stops_at_distinct_instants_stay_within_the_budget() {
    let mut driven = Driven::new(TASKS, 0, "");
    let live = driven.bounds().further(&driven.ledger);
    let first = TASKS - live;
    for task in 0..first {
        let list = match task % 2 {
            0 => &mut driven.ledger.done,
            _ => &mut driven.ledger.failed,
        };
        list.insert(TaskIndex(task));
    }
    // All instants count from the oldest one, and are long.
    assert_eq!(driven.start(first..=first, AttemptKind::Original), 1);
    driven.now = driven.now.plus(Span::from_seconds(90 * 86_400));
    let started = driven.start(first + 1..TASKS, AttemptKind::Original);
    assert_eq!(started + 1, live as usize);
    let mut ledger = driven.ledger.clone();
    for task in first..TASKS {
        driven.now = driven.now.plus(Span(1));
        let kind = match task % 2 {
            0 => KillKind::Replace,
            _ => KillKind::Abandon,
        };
        assert!(ledger.kill(TaskIndex(task), AttemptNumber(0), kind, driven.now));
    }
    driven.write(&ledger, None);
    assert_eq!(driven.live(), []);
}

/// Fields of other clients stay in the status, so that nothing is launched. Running attempts are
/// stopped.
#[test]
fn a_status_that_is_too_large_blocks_launches_but_no_stops() {
    let mut driven = Driven::new(1_000, 0, "");
    assert_eq!(driven.start(0..500, AttemptKind::Original), 500);
    let before = size::bytes(&driven.owner);
    let large = "x".repeat(1_400_000);
    let edit = |owner: &DeadlineJob, place: &str, value: serde_json::Value| -> DeadlineJob {
        let mut object = serde_json::to_value(owner).unwrap();
        object["status"][place] = value;
        serde_json::from_value(object).unwrap()
    };
    let condition = serde_json::json!([{"type": "Mine", "status": "True", "reason": "Large",
        "message": large, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    for (place, value) in [
        ("novel", serde_json::json!({"of": large})),
        ("conditions", condition),
    ] {
        let owner = edit(&driven.owner, place, value);
        let bounds = Bounds::of(&owner, &driven.job, node_bytes(), 0);
        assert_eq!(bounds.further(&driven.ledger), 0, "{place}");
        let launches = [Move::Launch(original(600))];
        assert_eq!(bounds.fitting(&driven.ledger, &launches), Some(vec![]));
    }
    // The next write replaces fields that shed writes itself.
    driven.owner = edit(&driven.owner, "failedIndexes", "0-3".into());
    driven.owner = edit(&driven.owner, "phase", large.into());
    driven.suspend(true);
    assert_eq!(driven.live(), []);
    assert!(size::bytes(&driven.owner) < before + 20_000);
}

#[test]
fn a_job_launches_only_attempts_whose_further_records_fit() {
    let mut driven = Driven::new(TASKS, size::SPEC_MAX, ", idempotency: None");
    let started = driven.start(0..TASKS, AttemptKind::Original);
    assert_eq!(driven.bounds().further(&driven.ledger), 0);
    assert_eq!(driven.start(90_000..90_010, AttemptKind::Original), 0);
    driven.suspend(true);
    driven.go();
    assert_eq!(driven.ledger.counts.superseded, started as i64);
}
