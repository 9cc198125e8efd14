use super::*;

fn facts(status: &str) -> PodFacts {
    let yaml = format!(
        r"
metadata:
  name: count-0f51c8af-3-1
  namespace: team
  uid: pod-uid
  labels:
    shed.dev/job-uid: job-uid
    shed.dev/attempt: '1'
    batch.kubernetes.io/job-completion-index: '3'
  finalizers: [shed.dev/attempt-tracking]
  ownerReferences: [{{apiVersion: shed.dev/v1alpha1, kind: DeadlineJob, name: count, uid: job-uid, controller: true}}]
spec:
  nodeName: node-1
  initContainers: [{{name: sidecar, restartPolicy: Always}}, {{name: prepare}}]
  containers: [{{name: task}}]
status: {status}
"
    );
    let pod = serde_saphyr::from_str(&yaml).unwrap();
    PodFacts::from_pod(&pod, Instant(99_000))
}

fn stage_of(status: &str) -> Stage {
    facts(status).attempt.unwrap().stage
}

#[test]
fn owner_and_name_give_the_attempt_its_identity() {
    let facts = facts("{phase: Pending}");
    assert!(facts.is_attempt());
    let attempt = facts.attempt.unwrap();
    assert_eq!((attempt.task, attempt.number), (3, 1));
    assert!(attempt.tracked && !attempt.deleting);
}

#[test]
fn a_success_counts_before_the_sidecar_is_gone() {
    let status = "{phase: Running, containerStatuses: [{name: task, ready: false, restartCount: 0, \
        image: i, imageID: i, state: {terminated: {exitCode: 0, finishedAt: '1970-01-01T00:00:05Z'}}}]}";
    assert_eq!(
        stage_of(status),
        Stage::Succeeded {
            finished: Instant(5000)
        }
    );
    let facts_of = facts(status);
    assert!(
        facts_of.terminal && facts_of.is_leaving,
        "its sidecar still runs"
    );
    let attempt = facts_of.attempt.unwrap();
    assert!(attempt.is_gone, "no attempt is counted in its place");
    let over = facts(&status.replace("phase: Running", "phase: Succeeded"));
    assert!(over.terminal && !over.is_leaving);
}

#[test]
fn an_exit_code_is_the_tasks_own_failure_and_an_eviction_is_not() {
    let own = "{phase: Failed, containerStatuses: [{name: task, ready: false, restartCount: 0, \
        image: i, imageID: i, state: {terminated: {exitCode: 3, finishedAt: '1970-01-01T00:00:05Z'}}}]}";
    assert_eq!(
        stage_of(own),
        Stage::Failed {
            finished: Instant(5000),
            disrupted: false
        }
    );
    let evicted = "{phase: Failed, reason: Evicted}";
    assert_eq!(
        stage_of(evicted),
        Stage::Failed {
            finished: Instant(99_000),
            disrupted: true
        }
    );
}

#[test]
fn a_failed_image_pull_is_stuck_with_the_kubelets_message() {
    let status = "{phase: Pending, containerStatuses: [{name: task, ready: false, restartCount: 0, \
        image: i, imageID: i, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}";
    let Stage::Stuck { reason, message } = stage_of(status) else {
        panic!("not stuck");
    };
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("ImagePullBackOff", "container task: no such image")
    );
}

#[test]
fn a_pod_without_our_labels_only_counts_as_load() {
    let pod = serde_saphyr::from_str(
        "{metadata: {name: x, namespace: y}, spec: {nodeName: n, containers: [{name: c, resources: \
         {requests: {cpu: '1'}}}]}}",
    )
    .unwrap();
    let facts = PodFacts::from_pod(&pod, Instant(0));
    assert!(facts.attempt.is_none() && !facts.terminal);
    assert_eq!(facts.requests.get("cpu"), 1000);
}

#[test]
fn a_crashing_sidecar_holds_up_only_a_task_not_yet_started() {
    let init = "initContainerStatuses: [{name: sidecar, ready: false, restartCount: 4, image: i, \
        imageID: i, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]";
    let waiting = stage_of(&format!("{{phase: Pending, {init}}}"));
    assert!(matches!(waiting, Stage::Stuck { .. }), "{waiting:?}");
    let running = stage_of(&format!(
        "{{phase: Running, {init}, containerStatuses: [{{name: task, ready: true, restartCount: 0, \
         image: i, imageID: i, state: {{running: {{startedAt: '1970-01-01T00:00:01Z'}}}}}}]}}"
    ));
    assert_eq!(running, Stage::Running);
}

/// The status of a container: its name, restarts, state, and the exit code of its last run.
fn container(name: &str, restarts: u32, state: &str, code: i32) -> String {
    format!(
        "[{{name: {name}, ready: false, restartCount: {restarts}, image: i, imageID: i, \
         state: {{{state}}}, lastState: {{terminated: {{exitCode: {code}}}}}}}]"
    )
}

const BACKS_OFF: &str = "waiting: {reason: CrashLoopBackOff}";
const RUNS: &str = "running: {startedAt: '1970-01-01T00:00:10Z'}";

/// As in batch/v1, where the kubelet restarts it until it succeeds or the limit is reached.
#[test]
fn a_plain_init_container_that_crashes_keeps_its_pod() {
    let prepare = container("prepare", 3, BACKS_OFF, 7);
    let facts = facts(&format!(
        "{{phase: Pending, initContainerStatuses: {prepare}}}"
    ));
    let attempt = facts.attempt.unwrap();
    assert_eq!((attempt.stage, attempt.restarts), (Stage::Pending, 3));
    let crash = attempt.crash_loop.unwrap();
    assert!(crash.is_init, "{crash:?}");
    let words = "container prepare exited with code 7 and was restarted 3 times in place";
    assert_eq!(crash.message, words);
}

#[test]
fn restarts_of_the_agent_are_not_the_users() {
    let (agent, task) = (
        container("shed-agent", 4, RUNS, 137),
        container("task", 1, RUNS, 1),
    );
    let facts = facts(&format!(
        "{{phase: Running, initContainerStatuses: {agent}, containerStatuses: {task}}}"
    ));
    let attempt = facts.attempt.unwrap();
    assert_eq!((attempt.restarts, attempt.crash_loop), (1, None));
}

#[test]
fn a_crash_loop_is_over_once_the_container_has_run_for_a_minute() {
    let crash = |restarts, state, code| {
        let task = container("task", restarts, state, code);
        let facts = facts(&format!("{{phase: Running, containerStatuses: {task}}}"));
        facts.attempt.unwrap().crash_loop
    };
    let goes_on = |crash: Option<Box<CrashLoop>>, at| crash.unwrap().goes_on(Instant(at));
    assert!(goes_on(crash(1, BACKS_OFF, 1), 900_000));
    assert!(goes_on(crash(2, RUNS, 1), 69_999));
    assert!(!goes_on(crash(2, RUNS, 1), 70_000));
    assert_eq!(crash(1, RUNS, 1), None, "the first restart comes at once");
    assert_eq!(crash(0, "running: {}", 0), None);
}

#[test]
fn a_sidecar_that_waits_for_its_restart_is_shown_as_ended() {
    let pod = serde_saphyr::from_str(
        "{metadata: {name: x, namespace: y, labels: {shed.dev/job-uid: u, shed.dev/attempt: '0', \
          batch.kubernetes.io/job-completion-index: '0'}}, \
          spec: {initContainers: [{name: prepare, restartPolicy: Always}], containers: [{name: task}]}, \
          status: {phase: Pending, initContainerStatuses: [{name: prepare, ready: false, restartCount: 2, \
          image: i, imageID: i, state: {terminated: {exitCode: 9}}}]}}",
    )
    .unwrap();
    let stage = PodFacts::from_pod(&pod, Instant(0)).attempt.unwrap().stage;
    let Stage::Stuck { message, .. } = stage else {
        panic!("{stage:?}");
    };
    assert!(
        message.contains("prepare") && message.contains("exited with code 9"),
        "{message}"
    );
}

#[test]
fn a_part_is_done_when_its_agent_says_where_it_ended() {
    let part = |phase: &str, agent: &str, deleted: &str| {
        let yaml = format!(
            r"
metadata:
  labels: {{shed.dev/job-uid: j, shed.dev/attempt: '1', shed.dev/segment: '7',
    batch.kubernetes.io/job-completion-index: '3'}}
  {deleted}
spec: {{nodeName: n, containers: [{{name: task}}],
  initContainers: [{{name: shed-agent, env: [{{name: SHED_RANGE_START, value: '0'}}]}}]}}
status:
  phase: {phase}
  containerStatuses: [{{name: task, ready: false, restartCount: 0, image: i, imageID: i,
    state: {{terminated: {{exitCode: 0, finishedAt: '1970-01-01T00:00:05Z'}}}}}}]
  initContainerStatuses: [{{name: shed-agent, ready: false, restartCount: 0, image: i, imageID: i,
    state: {{{agent}}}}}]
"
        );
        let pod = serde_saphyr::from_str(&yaml).unwrap();
        PodFacts::from_pod(&pod, Instant(99_000)).attempt.unwrap()
    };
    let said = r#"terminated: {exitCode: 0, message: "40/100\n"}"#;
    let done = part("Succeeded", said, "");
    assert_eq!(done.task, 7, "its part");
    let units = done.reached.unwrap();
    assert_eq!((units.done, units.total), (40, 100));
    assert!(matches!(done.stage, Stage::Succeeded { .. }));
    assert_eq!(part("Running", "running: {}", "").stage, Stage::Running);
    let deleted = |at: &str| {
        format!("deletionTimestamp: '1970-01-01T00:00:{at}Z'\n  deletionGracePeriodSeconds: 3")
    };
    let cut_off = part("Succeeded", said, &deleted("09"));
    assert!(cut_off.end.may_be_answer());
    let sooner = part("Succeeded", said, &deleted("12"));
    assert!(!sooner.end.may_be_answer());
}
