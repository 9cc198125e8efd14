use super::*;
use crate::fixtures;
use crate::job::view::Places;
use crate::validate::{ValidatedJob, validate};

fn at(seconds: i64) -> Instant {
    Instant(0).plus(Span::from_seconds(seconds))
}

/// The same by the process's own clock, which differs from that of the apiserver.
fn own(seconds: i64) -> Instant {
    at(seconds + 1000)
}

/// One job, whose attempts were launched at 0.
struct Case {
    job: ValidatedJob,
    ledger: Ledger,
    pods: JobPods,
    nodes: Vec<NodeFacts>,
    binds: Vec<(&'static str, i64)>,
    is_uncreatable: bool,
    is_unshared: bool,
    placement: Placement,
}

impl Case {
    fn new(change: &str, kinds: &[AttemptKind]) -> Self {
        let mut ledger = Ledger::default();
        for (number, &kind) in kinds.iter().enumerate() {
            let task = match kind {
                AttemptKind::Clone => 0,
                _ => number as u32,
            };
            let launch = shed_core::fixtures::launch(task, kind);
            ledger.launch(&launch, at(0));
        }
        Self {
            job: validate(&fixtures::job(change)).unwrap(),
            ledger,
            pods: JobPods::new(),
            nodes: vec![NodeFacts::from_node(&fixtures::node("node-1", 8))],
            binds: vec![],
            is_uncreatable: false,
            is_unshared: false,
            placement: Placement::default(),
        }
    }

    fn one() -> Self {
        Self::new("completions: 1", &[AttemptKind::Original])
    }

    /// The attempt's pod, created at 0, with these lines of its specification and this condition.
    fn pod(&mut self, id: AttemptId, spec: &str, condition: &str) {
        let yaml = format!(
            "{{metadata: {{name: p-{}-{}, creationTimestamp: '1970-01-01T00:00:00Z', labels: \
             {{shed.dev/job-uid: j, shed.dev/attempt: '{}', shed.dev/task: '{}'}}}}, \
             spec: {{{spec} containers: [{{name: c, resources: {{requests: {{cpu: '2'}}}}}}]}}, \
             status: {{phase: Pending, conditions: [{condition}]}}}}",
            id.0, id.1, id.1, id.0
        );
        let pod = PodFacts::from_pod(&serde_saphyr::from_str(&yaml).unwrap(), at(0));
        self.pods.insert(id, Arc::new(pod));
    }

    fn look(&mut self, seconds: i64) -> Option<i64> {
        let binds = self.binds.clone();
        let last_bind = move |name: &str| {
            let bind = binds.iter().find(|(scheduler, _)| *scheduler == name);
            bind.map(|(_, at_seconds)| at(*at_seconds))
        };
        let (job, ledger) = (Arc::new(self.job.clone()), self.ledger.clone());
        let view = JobView {
            pods: self.pods.clone(),
            places: Places {
                demand: Resources::from_pairs([("cpu", 2000), ("pods", 1)]),
                ..Places::default()
            },
            ..JobView::new(job, ledger, at(seconds), own(seconds))
        };
        let due = self.placement.look(&Input {
            view: &view,
            nodes: &self.nodes,
            last_bind: &last_bind,
            is_uncreatable: self.is_uncreatable,
            is_unshared: self.is_unshared,
        });
        due.map(|due| due.since(own(0)).0 / 1000)
    }

    fn unplaceable(&self) -> Vec<AttemptId> {
        self.placement.unplaceable.keys().copied().collect()
    }

    fn reported(&self) -> Option<(&str, &str)> {
        let blocked = self.placement.blocked()?;
        Some((blocked.reason, blocked.message.as_str()))
    }
}

/// `PodScheduled=False` for this number of seconds.
fn refused(since: i64, message: &str) -> String {
    format!(
        "{{type: PodScheduled, status: 'False', reason: Unschedulable, message: '{message}', \
         lastTransitionTime: '1970-01-01T00:00:{since:02}Z'}}"
    )
}

const ANTI: &str = "0/3 nodes are available: 3 node(s) did not match pod anti-affinity rules.";
const FULL: &str = "0/3 nodes are available: 3 Insufficient cpu.";

#[test]
fn a_pod_refused_for_ten_seconds_is_unplaceable_and_reported() {
    let mut case = Case::one();
    case.pod((0, 0), "", &refused(1, ANTI));
    assert_eq!(case.look(5), Some(11));
    assert_eq!((case.unplaceable(), case.reported()), (vec![], None));
    assert_eq!(case.look(11), None);
    assert_eq!(case.unplaceable(), [(0, 0)]);
    let words = format!("pod p-0-0: {ANTI}");
    assert_eq!(case.reported(), Some(("Unschedulable", words.as_str())));
    // It is placed after all.
    case.pod((0, 0), "nodeName: n,", "");
    case.look(12);
    assert_eq!((case.unplaceable(), case.reported()), (vec![], None));
}

#[test]
fn a_clock_that_is_ahead_of_this_one_makes_nothing_wait_longer() {
    let mut case = Case::one();
    case.pod((0, 0), "", &refused(50, ANTI));
    assert_eq!(case.look(2), Some(12));
    case.look(12);
    assert_eq!(case.unplaceable(), [(0, 0)]);
}

#[test]
fn a_silent_scheduler_is_judged_by_whether_it_places_others() {
    let mut case = Case::one();
    case.pod((0, 0), "schedulerName: own,", "");
    case.binds = vec![("default-scheduler", 9)];
    assert_eq!(case.look(9), Some(10));
    case.look(10);
    assert_eq!(case.unplaceable(), [(0, 0)]);
    let (reason, words) = case.reported().unwrap();
    assert_eq!(reason, "Unschedulable");
    assert!(
        words.contains("own (spec.template.spec.schedulerName) has placed"),
        "{words}"
    );
    // A pod is not unplaceable while its scheduler works through a queue.
    let mut busy = Case::one();
    busy.pod((0, 0), "", "");
    for second in [1, 10, 60, 300] {
        busy.binds = vec![("default-scheduler", second - 1)];
        assert_eq!(busy.look(second), Some(second + 9));
        assert_eq!((busy.unplaceable(), busy.reported()), (vec![], None));
    }
    busy.look(310);
    let (_, words) = busy.reported().unwrap();
    assert!(
        words.contains("default-scheduler has not responded"),
        "{words}"
    );
}

#[test]
fn a_gated_pod_waits_and_its_scheduler_has_time_after_that() {
    let mut case = Case::one();
    let gated = refused(0, "Scheduling is blocked")
        .replace("reason: Unschedulable", "reason: SchedulingGated");
    case.pod((0, 0), "schedulingGates: [{name: g}],", &gated);
    for second in [1, 10, 3600] {
        assert_eq!(case.look(second), None);
        assert_eq!((case.unplaceable(), case.reported()), (vec![], None));
    }
    case.pod((0, 0), "", &gated);
    assert_eq!(case.look(3601), Some(3610));
    // The condition was false all the time.
    case.pod((0, 0), "", &refused(0, ANTI));
    assert_eq!(case.look(3602), Some(3610));
    assert_eq!((case.unplaceable(), case.reported()), (vec![], None));
    case.look(3610);
    assert_eq!(case.unplaceable(), [(0, 0)]);
}

#[test]
fn a_pod_that_others_are_preempted_for_is_not_unplaceable() {
    let mut case = Case::one();
    let words = "0/3 nodes are available: preemption: found a potential placement on n.";
    case.pod((0, 0), "", &refused(0, words));
    case.look(10);
    assert_eq!(case.unplaceable(), []);
    assert_eq!(case.reported().unwrap().0, "Unschedulable");
}

#[test]
fn on_full_nodes_the_capacity_count_holds_until_disproved() {
    let mut case = Case::one();
    case.pod((0, 0), "", &refused(0, FULL));
    case.look(10);
    assert_eq!(case.unplaceable(), [], "it waits for the cluster to grow");
    assert_eq!(case.reported().unwrap().0, "Unschedulable");
    assert!(case.placement.waits_for_capacity());
    // The planner counts capacity, but the scheduler still refuses.
    case.placement.note_capacity(true, own(20));
    case.placement.note_capacity(true, own(25));
    assert_eq!(case.look(25), Some(30));
    assert_eq!(case.unplaceable(), []);
    case.look(30);
    assert_eq!(case.unplaceable(), [(0, 0)]);
    // A disproved count stays disproved. Otherwise shed would reserve capacity for it repeatedly.
    assert!(!case.placement.waits_for_capacity());
    case.placement.note_capacity(false, own(31));
    case.look(31);
    assert_eq!(case.unplaceable(), [(0, 0)]);
    // Capacity that appeared only briefly disproves nothing.
    let mut other = Case::one();
    other.pod((0, 0), "", &refused(0, FULL));
    for (is_there, second) in [(true, 10), (false, 15), (true, 16)] {
        other.placement.note_capacity(is_there, own(second));
    }
    other.look(25);
    assert_eq!(other.unplaceable(), []);
}

#[test]
fn a_clone_that_is_not_placed_in_five_seconds_is_withdrawn() {
    let kinds = [AttemptKind::Original, AttemptKind::Clone];
    let mut case = Case::new("completions: 1", &kinds);
    case.pod((0, 0), "nodeName: n,", "");
    case.pod((0, 1), "", &refused(1, FULL));
    assert_eq!(case.look(5), Some(6));
    assert_eq!(case.unplaceable(), []);
    case.look(6);
    assert_eq!(case.unplaceable(), [(0, 1)]);
    // Its scheduler works through a queue, so no autoscaler sees the clone yet.
    let mut busy = Case::new("completions: 1", &kinds);
    busy.pod((0, 0), "nodeName: n,", "");
    busy.pod((0, 1), "", "");
    busy.binds = vec![("default-scheduler", 5)];
    assert_eq!(busy.look(9), Some(10));
    assert_eq!(busy.unplaceable(), []);
}

#[test]
fn words_that_change_are_reported_anew_once_a_minute() {
    let mut case = Case::one();
    case.pod((0, 0), "", &refused(0, ANTI));
    case.look(10);
    let before = case.placement.clone();
    case.pod(
        (0, 0),
        "",
        &refused(0, "0/4 nodes are available: 4 did not."),
    );
    case.look(20);
    assert!(!case.placement.is_news_after(&before));
    case.look(70);
    assert!(case.placement.is_news_after(&before));
    assert!(case.reported().unwrap().1.contains("0/4"));
}

#[test]
fn a_job_that_matches_no_node_is_reported_at_once() {
    let selector = "{completions: 2, template: {spec: {nodeSelector: {disk: ssd}, containers: [{name: c, \
    image: i}]}}}";
    let mut case = Case::new(selector, &[]);
    case.look(0);
    assert!(case.placement.no_node);
    let (reason, words) = case.reported().unwrap();
    assert_eq!(reason, "NoMatchingNode");
    assert!(words.contains("no node has the label disk=ssd"), "{words}");
    // Its node's own words don't hide that.
    case = Case::new(selector, &[AttemptKind::Original]);
    case.pod((0, 0), "", &refused(0, ANTI));
    case.look(20);
    assert_eq!(case.reported().unwrap().0, "NoMatchingNode");
    // A job whose attempts all run needs no capacity.
    case.job.rules.completions = 1;
    case.pod((0, 0), "nodeName: n,", "");
    case.look(21);
    assert_eq!(case.reported(), None);
    // Neither does a job that may not run.
    case.job.rules.completions = 2;
    case.look(22);
    assert!(case.reported().is_some());
    case.job.rules.suspend = true;
    case.look(23);
    assert_eq!((case.reported(), case.placement.no_node), (None, false));
    // A cluster without nodes.
    let mut empty = Case::new("", &[]);
    empty.nodes.clear();
    empty.look(0);
    assert!(
        empty
            .reported()
            .unwrap()
            .1
            .contains("the cluster has no nodes")
    );
}

#[test]
fn what_can_not_be_created_is_unplaceable_while_that_lasts() {
    let mut case = Case::new("completions: 2", &[AttemptKind::Original; 2]);
    case.pod((1, 0), "nodeName: n,", "");
    case.look(1);
    assert_eq!(case.unplaceable(), []);
    case.is_uncreatable = true;
    case.look(1);
    assert_eq!(case.unplaceable(), [(0, 0)]);
}

#[test]
fn a_clone_waiting_for_a_volume_held_elsewhere_is_unplaceable() {
    let mut case = Case::new(
        "completions: 1",
        &[AttemptKind::Original, AttemptKind::Clone],
    );
    case.pod((0, 0), "nodeName: n,", "");
    case.pod((0, 1), "nodeName: m,", "");
    assert_eq!(case.look(59), None);
    case.is_unshared = true;
    assert_eq!(case.look(59), Some(60));
    assert_eq!(case.unplaceable(), []);
    case.look(60);
    assert_eq!(case.unplaceable(), [(0, 1)]);
}

#[test]
fn facts_are_marked_as_long_as_the_pod_is_where_it_was_seen() {
    use shed_core::fixtures::{attempt, job};
    let mut case = Case::one();
    case.pod((0, 0), "", &refused(0, ANTI));
    case.look(10);
    let mut facts = job("a").task(0, [attempt(0).pending()]).build();
    case.placement.mark(&mut facts, &case.pods);
    assert!(facts.tasks[0].attempts[0].unplaceable);
    case.pod((0, 0), "nodeName: n,", "");
    let mut placed = job("a").task(0, [attempt(0).pending()]).build();
    case.placement.mark(&mut placed, &case.pods);
    assert!(
        !placed.tasks[0].attempts[0].unplaceable,
        "the pass is behind"
    );
}

#[test]
fn requests_are_learned_from_the_job_s_pods() {
    let mut case = Case::one();
    let template = || Resources::from_pairs([("cpu", 1000), ("memory", 7)]);
    let mut learn = |pods: &JobPods| case.placement.learn_requests(template(), pods);
    assert_eq!(learn(&JobPods::new()), template());
    case.pods.clear();
    let mut pods = Case::one();
    pods.pod((0, 0), "overhead: {gpu: '1'},", "");
    let learned = learn(&pods.pods);
    assert_eq!(
        (
            learned.get("cpu"),
            learned.get("memory"),
            learned.get("gpu")
        ),
        (2000, 7, 1)
    );
    assert_eq!(
        learn(&JobPods::new()).get("cpu"),
        2000,
        "also once they are gone"
    );
}
