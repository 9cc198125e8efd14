use super::*;
use crate::cluster::requests;

/// A node with these labels, specification and amounts.
fn node(labels: &str, spec: &str, allocatable: &str) -> NodeFacts {
    let yaml = format!(
        "{{metadata: {{name: n, labels: {{{labels}}}}}, spec: {{{spec}}}, status: {{allocatable: \
         {{{allocatable}}}, conditions: [{{type: Ready, status: 'True'}}]}}}}"
    );
    NodeFacts::from_node(&serde_saphyr::from_str(&yaml).unwrap())
}

const SMALL: &str = "cpu: '8', memory: 16Gi, pods: '110'";

/// The missing requirement of a pod with these requests.
fn missing(requests: &str, spec: &str, nodes: &[NodeFacts]) -> Option<String> {
    let pod =
        format!("{{{spec} containers: [{{name: c, resources: {{requests: {{{requests}}}}}}}]}}");
    let pod: PodSpec = serde_saphyr::from_str(&pod).unwrap();
    unmet_requirement(&pod, &requests::of_pod(&pod), nodes.iter())
}

#[track_caller]
fn check(requests: &str, spec: &str, nodes: &[NodeFacts], expected: &str) {
    assert_eq!(missing(requests, spec, nodes).as_deref(), Some(expected));
}

#[test]
fn a_node_that_could_hold_it_when_empty_is_enough() {
    let nodes = [
        node("", "taints: [{key: k, effect: NoSchedule}]", SMALL),
        node("disk: ssd", "", SMALL),
    ];
    let selector = "nodeSelector: {disk: ssd},";
    assert_eq!(missing("cpu: '8'", selector, &nodes), None);
    // A node that is cordoned, not ready or new may come back.
    let taints = "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: \
                  NoSchedule}, {key: node.cloudprovider.kubernetes.io/uninitialized, effect: NoSchedule}]";
    let cordoned = [node("disk: ssd", taints, SMALL)];
    assert_eq!(missing("cpu: '8'", selector, &cordoned), None);
}

#[test]
fn each_thing_that_no_node_has_is_named_with_its_size() {
    let nodes = [
        node("zone: a", "", SMALL),
        node("", "", "cpu: 3500m, memory: 3Gi, pods: '9'"),
    ];
    check(
        "cpu: '100000'",
        "",
        &nodes,
        "cpu: 100000 requested, the largest node has 8",
    );
    check(
        "memory: 20Gi, cpu: 1500m",
        "",
        &nodes[1..],
        "memory: 20Gi requested, the largest node has 3Gi",
    );
    check(
        "nvidia.com/gpu: '1'",
        "",
        &nodes,
        "no node has nvidia.com/gpu (1 requested)",
    );
    let selector = "nodeSelector: {disk: ssd},";
    check(
        "cpu: '9'",
        selector,
        &nodes,
        "no node has the label disk=ssd; cpu: 9 requested, the largest node has 8",
    );
    let affinity = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
        {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b, c]}, {key: gpu, \
        operator: Exists}]}, {}]}}},";
    check(
        "cpu: '1'",
        affinity,
        &nodes,
        "no node satisfies the required node affinity zone In (b, c) and gpu Exists or (an empty term, \
         which matches no node)",
    );
    check("cpu: '1'", "", &[], "the cluster has no nodes");
}

#[test]
fn taints_that_are_on_every_node_are_listed() {
    let tainted = |taint: &str| {
        node(
            "",
            &format!("taints: [{{{taint}, effect: NoSchedule}}]"),
            SMALL,
        )
    };
    let nodes = [tainted("key: only, value: us"), tainted("key: gpu")];
    check(
        "cpu: '1'",
        "",
        &nodes,
        "every node has a taint that spec.tolerations does not cover: gpu:NoSchedule, only=us:NoSchedule",
    );
    let tolerates = "tolerations: [{key: gpu, operator: Exists}],";
    assert_eq!(missing("cpu: '1'", tolerates, &nodes), None);
}

#[test]
fn what_is_there_but_not_on_one_node_is_counted_by_node() {
    let nodes = [
        node("disk: ssd", "", "cpu: '2', pods: '9'"),
        node("", "", SMALL),
        node("", "", SMALL),
        node(
            "disk: ssd",
            "taints: [{key: gpu, effect: NoExecute}]",
            SMALL,
        ),
    ];
    check(
        "cpu: '8'",
        "nodeSelector: {disk: ssd},",
        &nodes,
        "of 4 nodes 2 without the label disk=ssd, 1 with less cpu than 8, 1 with the taint gpu:NoExecute",
    );
}

#[test]
fn a_node_that_does_not_say_what_it_can_hold_holds_nothing() {
    let nodes = [node("", "", "")];
    check(
        "cpu: '1'",
        "",
        &nodes,
        "no node reports its allocatable resources",
    );
    check("", "", &nodes, "no node reports its allocatable resources");
    let nodes = [node("", "", ""), node("", "", SMALL)];
    assert_eq!(missing("cpu: '1'", "", &nodes), None);
}

#[test]
fn long_lists_are_cut() {
    let nodes: Vec<NodeFacts> = (0..9)
        .map(|n| {
            node(
                "",
                &format!("taints: [{{key: k{n}, effect: NoSchedule}}]"),
                SMALL,
            )
        })
        .collect();
    let words = missing("cpu: '1'", "", &nodes).unwrap();
    assert!(words.ends_with("k3:NoSchedule, 5 more"), "{words}");
}
