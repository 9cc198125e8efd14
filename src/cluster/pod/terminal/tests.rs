use k8s_openapi::api::core::v1::Pod;

use super::{is_disrupted, is_gone, is_refused};

const MAIN: &str = "containers: [{name: task}]";
const WAITING: &str = "containerStatuses: [{name: task, ready: false, restartCount: 0, image: i, \
                       imageID: '', state: {waiting: {reason: PodInitializing}}}]";

fn pod(spec: &str, status: &str) -> Pod {
    serde_saphyr::from_str(&format!(
        "{{metadata: {{name: p}}, spec: {{nodeName: n, {spec}}}, status: {{phase: Failed, {status}}}}}"
    ))
    .unwrap()
}

/// The main container's status, ended with this code.
fn ended(code: i32) -> String {
    format!(
        "containerStatuses: [{{name: task, ready: false, restartCount: 0, image: i, imageID: i, \
         state: {{terminated: {{exitCode: {code}}}}}}}]"
    )
}

/// The status of init containers `a`, `b`, …, each in this state.
fn init(states: &[&str]) -> String {
    let names = ["a", "b"];
    let states = names.iter().zip(states).map(|(name, state)| {
        format!(
            "{{name: {name}, ready: false, restartCount: 0, image: i, imageID: i, state: {{{state}}}}}"
        )
    });
    let list: Vec<String> = states.collect();
    format!("initContainerStatuses: [{}]", list.join(", "))
}

const BY_KUBELET: &str =
    "conditions: [{type: ContainersReady, status: 'False', reason: PodFailed}]";
const NO_SANDBOX: &str = "conditions: [{type: PodReadyToStartContainers, status: 'False'}]";

#[test]
fn a_pod_that_a_kubelet_refused_is_gone_whatever_the_reason() {
    for reason in [
        "Evicted",
        "NodeShutdown",
        "OutOfephemeral-storage",
        "OutOfnvidia.com/gpu",
        "TaintToleration",
        "NodePorts",
        "TopologyAffinityError",
        "PodOSNotSupported",
        "AppArmor",
    ] {
        let refused = pod(
            MAIN,
            &format!("reason: {reason}, message: 'Pod was rejected: the node had condition'"),
        );
        assert!(is_refused(&refused) && is_gone(&refused), "{reason}");
        assert!(is_disrupted(&refused), "{reason}");
    }
    for reason in ["UnexpectedAdmissionError", "NodeAffinity", "OutOfcpu"] {
        let refused = pod(MAIN, &format!("reason: {reason}, message: no capacity"));
        assert!(is_gone(&refused) && is_disrupted(&refused), "{reason}");
    }
    // Garbage collection does not write this.
    let lost = pod(
        MAIN,
        "conditions: [{type: DisruptionTarget, status: 'True'}]",
    );
    assert!(!is_gone(&lost) && is_disrupted(&lost));
    let pending = pod(MAIN, "message: 'Pod was rejected: no'");
    let phase = |mut pod: Pod| {
        pod.status.as_mut().unwrap().phase = Some("Pending".to_owned());
        pod
    };
    assert!(!is_gone(&phase(pending)));
}

#[test]
fn a_failed_init_container_ends_a_pod_that_does_not_restart() {
    let failed = init(&["terminated: {exitCode: 1}"]);
    let never = format!("restartPolicy: Never, {MAIN}, initContainers: [{{name: a}}]");
    let status = format!("{failed}, {WAITING}");
    let gone = pod(&never, &status);
    assert!(is_gone(&gone) && !is_disrupted(&gone));
    // Restarted in place it may succeed yet, and a sidecar always is.
    let on_failure = never.replace("Never", "OnFailure");
    assert!(!is_gone(&pod(&on_failure, &status)));
    assert!(is_gone(&pod(
        &on_failure,
        &format!("{status}, {BY_KUBELET}")
    )));
    let sidecar = never.replace("{name: a}", "{name: a, restartPolicy: Always}");
    assert!(!is_gone(&pod(&sidecar, &status)));
    // After a successful init container the main container may have run.
    let fine = init(&["terminated: {exitCode: 0}"]);
    assert!(!is_gone(&pod(&never, &format!("{fine}, {WAITING}"))));
}

#[test]
fn a_pod_ended_during_initialization_is_gone_with_its_sandbox() {
    let spec = format!(
        "restartPolicy: Never, {MAIN}, initContainers: [{{name: a, restartPolicy: Always}}, {{name: b}}]"
    );
    // The agent was stopped, the image of the next init container was still being pulled.
    let torn_down = init(&[
        "terminated: {exitCode: 0}",
        "waiting: {reason: PodInitializing}",
    ]);
    let status = format!("{torn_down}, {WAITING}");
    assert!(!is_gone(&pod(&spec, &status)), "it may run on out of reach");
    assert!(is_gone(&pod(&spec, &format!("{status}, {NO_SANDBOX}"))));
    let up = NO_SANDBOX.replace("False", "True");
    assert!(!is_gone(&pod(&spec, &format!("{status}, {up}"))));
    let running = init(&["running: {}", "waiting: {}"]);
    assert!(!is_gone(&pod(
        &spec,
        &format!("{running}, {WAITING}, {NO_SANDBOX}")
    )));
    // Before anything was started there is no sandbox either.
    let fresh = init(&["waiting: {}", "waiting: {}"]);
    assert!(!is_gone(&pod(
        &spec,
        &format!("{fresh}, {WAITING}, {NO_SANDBOX}")
    )));
}

#[test]
fn a_container_between_two_runs_has_not_ended_for_good() {
    let spec = |policy: &str| format!("restartPolicy: {policy}, {MAIN}");
    assert!(is_gone(&pod(&spec("Never"), &ended(1))));
    assert!(!is_gone(&pod(&spec("OnFailure"), &ended(1))));
    assert!(is_gone(&pod(&spec("OnFailure"), &ended(0))));
    assert!(is_gone(&pod(
        &spec("OnFailure"),
        &format!("{}, {BY_KUBELET}", ended(1))
    )));
    let own = "restartPolicy: Never, containers: [{name: task, restartPolicy: Always}]";
    assert!(!is_gone(&pod(own, &ended(0))), "its own policy restarts it");
}

#[test]
fn a_pod_beyond_its_own_limit_has_failed_by_itself() {
    for (message, own) in [
        (
            "Usage of EmptyDir volume \"scratch\" exceeds the limit \"1Mi\". ",
            true,
        ),
        (
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
            true,
        ),
        (
            "Container task exceeded its local ephemeral storage limit \"1Gi\". ",
            true,
        ),
        (
            "The node was low on resource: ephemeral-storage. Container task was using 9Gi, request is 0, has larger consumption of ephemeral-storage. ",
            false,
        ),
        ("The node had condition: [DiskPressure]. ", false),
    ] {
        let mut evicted = pod(MAIN, &format!("reason: Evicted, {}", ended(137)));
        evicted.status.as_mut().unwrap().message = Some(message.to_owned());
        assert_eq!(is_disrupted(&evicted), !own, "{message}");
        // It is deleted before it is counted.
        let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
        evicted.metadata.deletion_timestamp = Some(now);
        assert_eq!(is_disrupted(&evicted), !own, "{message}");
    }
}
