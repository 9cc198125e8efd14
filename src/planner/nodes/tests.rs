use k8s_openapi::api::core::v1::Node as Object;
use shed_core::decide::decide;
use shed_core::memory::Memory;
use shed_core::plan::Plan;
use shed_core::policy::Policy;
use shed_core::snapshot::Snapshot;

use crate::cluster::Stores;
use crate::fixtures;
use crate::planner::nodes::NumberedNodes;
use crate::planner::observation;
use crate::reconcile::mock::{Apiserver, Process, originals, pod_name};
use crate::validate::validate;

/// A job of four tasks of one core each; two of them run on `node-1`.
async fn half_started() -> Apiserver {
    let api = Apiserver::new(fixtures::job_of_age(
        60,
        "template: {spec: {containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}",
    ));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(2));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    api.run((1, 0));
    api
}

fn cordoned(mut node: Object) -> Object {
    node.spec.get_or_insert_default().unschedulable = Some(true);
    node
}

fn not_ready(mut node: Object) -> Object {
    let conditions = node.status.as_mut().unwrap().conditions.as_mut();
    conditions.unwrap()[0].status = "Unknown".to_owned();
    node
}

/// The snapshot and the plan of a pass with these nodes.
fn pass(api: &Apiserver, nodes: &[Object]) -> (Snapshot, Plan) {
    let jobs = vec![(*api.job()).clone()];
    let process = Process::with_stores(api, Stores::for_tests(jobs, api.pods(), nodes));
    let snapshot = observation::view(&process.context.shared).snapshot;
    let policy = Policy {
        surge_max: 0,
        ..Policy::default()
    };
    let (plan, _) = decide(&snapshot, Memory::default(), &policy);
    (snapshot, plan)
}

fn nodes(first: Option<Object>) -> Vec<Object> {
    let second = fixtures::node("node-2", 2);
    first.into_iter().chain([second]).collect()
}

#[tokio::test]
async fn an_unusable_node_costs_the_others_no_capacity() {
    let api = half_started().await;
    let node = || fixtures::node("node-1", 2);
    for first in [Some(cordoned(node())), Some(not_ready(node())), None] {
        let (snapshot, plan) = pass(&api, &nodes(first.clone()));
        let names: Vec<&str> = snapshot.nodes.iter().map(|node| &*node.name.0).collect();
        assert_eq!(names, ["node-1", "node-2"], "{first:?}");
        assert_eq!(snapshot.nodes[0].free.get("cpu"), 0);
        assert_eq!(plan.actions.len(), 2, "node-2 is empty: {first:?}");
        let capacity = plan.report.capacity;
        assert_eq!(
            (capacity.usable.get("cpu"), capacity.used.get("cpu")),
            (2000, 0)
        );
    }
    // On a healthy node they hold their capacity.
    let (snapshot, plan) = pass(&api, &nodes(Some(node())));
    assert_eq!(snapshot.nodes[0].free.get("cpu"), 0);
    assert_eq!(plan.actions.len(), 2);
    assert_eq!(plan.report.capacity.used.get("cpu"), 2000);
}

#[tokio::test]
async fn a_node_without_allocatable_amounts_takes_nothing_from_others() {
    let api = half_started().await;
    let mut bare = fixtures::node("node-1", 2);
    bare.status.as_mut().unwrap().allocatable = None;
    let (snapshot, plan) = pass(&api, &nodes(Some(bare)));
    assert!(!snapshot.nodes[0].usable);
    assert_eq!(plan.report.capacity.usable.get("cpu"), 2000);
    assert_eq!(plan.actions.len(), 2, "and the other node has its capacity");
}

#[tokio::test]
async fn a_template_that_names_its_node_has_the_capacity_of_that_one() {
    let api = Apiserver::new(fixtures::job_of_age(
        0,
        "template: {spec: {nodeName: node-2, containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}",
    ));
    let (snapshot, plan) = pass(&api, &nodes(Some(fixtures::node("node-1", 8))));
    assert_eq!(snapshot.jobs[0].eligible_nodes.len(), 1);
    assert_eq!(plan.actions.len(), 2);
}

#[tokio::test]
async fn a_pod_that_runs_on_without_an_entry_holds_its_capacity() {
    let api = half_started().await;
    let both = || nodes(Some(fixtures::node("node-1", 2)));
    let (_, plan) = pass(&api, &both());
    assert_eq!(plan.actions.len(), 2);
    {
        // Its attempt is counted, it has yet to end.
        let job = api.job();
        let mut world = api.world.lock();
        let mut left = world.pods[&pod_name(&job, (0, 0))].clone();
        let labels = left.metadata.labels.as_mut().unwrap();
        labels.insert(crate::api::LABEL_ATTEMPT.to_owned(), "7".to_owned());
        left.spec.as_mut().unwrap().node_name = Some("node-2".to_owned());
        let name = pod_name(&job, (0, 7));
        left.metadata.name = Some(name.clone());
        world.pods.insert(name, left);
    }
    let (snapshot, plan) = pass(&api, &both());
    assert_eq!(snapshot.nodes[1].free.get("cpu"), 1000);
    assert_eq!(plan.actions.len(), 1);
}

/// 1 000 jobs of three kinds on 500 nodes.
#[test]
fn jobs_that_ask_for_the_same_nodes_share_the_search_for_them() {
    let kinds = [
        "",
        "nodeSelector: {zone: a}, ",
        "tolerations: [{key: gpu, operator: Exists}], ",
    ];
    let nodes = (0..500).map(|number| {
        let mut node = fixtures::node(&format!("node-{number:03}"), 2);
        let zone = if number % 5 == 0 { "a" } else { "b" };
        let zone = ("zone".to_owned(), zone.to_owned());
        node.metadata.labels = Some([zone].into());
        if number % 10 == 0 {
            let taint = "{taints: [{key: gpu, effect: NoSchedule}]}";
            node.spec = serde_saphyr::from_str(taint).unwrap();
        }
        node
    });
    let nodes: Vec<Object> = nodes.collect();
    let stores = Stores::for_tests(vec![], vec![], &nodes);
    let nodes = NumberedNodes::of(&stores, &stores.missing_nodes());
    let jobs = kinds.map(|kind| {
        let template =
            format!("template: {{spec: {{{kind}containers: [{{name: task, image: i}}]}}}}");
        validate(&fixtures::job(&template)).unwrap()
    });
    let eligible = (0..1000).map(|number| nodes.eligible(&jobs[number % 3]).len());
    let eligible: Vec<usize> = eligible.collect();
    assert_eq!(eligible[..3], [450, 50, 500]);
    assert!(eligible.chunks(3).all(|three| eligible.starts_with(three)));
    assert_eq!(nodes.visits.get(), 3 * 500);
}
