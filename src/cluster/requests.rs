//! Requests of a pod, as the scheduler counts them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_quantity::ParsedQuantity;
use shed_core::resources::Resources;

/// Resource name of the number of pods.
pub const PODS: &str = "pods";

/// Amounts in the core's units: milli-cpu for cpu, whole units for everything else.
/// A quantity that can't be read counts as nothing: the apiserver admits none such.
pub fn amounts(list: &BTreeMap<String, Quantity>) -> Resources {
    Resources::from_pairs(
        list.iter()
            .map(|(name, quantity)| (name.as_str(), amount(name, quantity))),
    )
}

fn amount(name: &str, quantity: &Quantity) -> i64 {
    let Some(value) = ParsedQuantity::try_from(quantity)
        .ok()
        .and_then(|parsed| parsed.to_bytes_f64())
    else {
        return 0;
    };
    // `as` saturates; a request is rounded up, as the scheduler does.
    let scale = if name == "cpu" { 1000.0 } else { 1.0 };
    (value * scale).ceil() as i64
}

/// Requests of a pod. The first candidate is the sum over its containers and sidecars. The others
/// are each init container together with the sidecars started before it. The result is the largest
/// of them, or the pod's own request of a resource that it names, plus the overhead, plus `pods: 1`.
pub fn of_pod(spec: &PodSpec) -> Resources {
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&own);
            peak = max(&peak, &sidecars);
        } else {
            let mut with_sidecars = sidecars.clone();
            with_sidecars.add(&own);
            peak = max(&peak, &with_sidecars);
        }
    }
    let mut running = sidecars;
    for container in &spec.containers {
        running.add(&of_container(container));
    }
    let mut total = max(&peak, &running);
    apply_pod_level(spec, &mut total);
    if let Some(overhead) = &spec.overhead {
        total.add(&amounts(overhead));
    }
    total.set(PODS, 1);
    total
}

fn of_container(container: &Container) -> Resources {
    let Some(resources) = &container.resources else {
        return Resources::default();
    };
    // A limit without a request is the request (the apiserver's default).
    let mut all = resources.limits.clone().unwrap_or_default();
    all.extend(resources.requests.clone().unwrap_or_default());
    amounts(&all)
}

/// Applies the pod's own requests (`spec.resources`), which replace the sum over its containers. A
/// limit without a request is the request, unless the containers request something (the
/// apiserver's default).
fn apply_pod_level(spec: &PodSpec, total: &mut Resources) {
    let Some(resources) = &spec.resources else {
        return;
    };
    let of = |list: Option<&BTreeMap<String, Quantity>>| list.map(amounts).unwrap_or_default();
    for (name, amount) in of(resources.limits.as_ref()).iter() {
        let is_requested = total.iter().any(|(requested, _)| requested == name);
        if is_huge_pages(name) || (is_pod_level(name) && !is_requested) {
            total.set(name, amount);
        }
    }
    for (name, amount) in of(resources.requests.as_ref()).iter() {
        if is_pod_level(name) {
            total.set(name, amount);
        }
    }
}

/// Whether the scheduler counts requests of this resource that are the pod's own.
fn is_pod_level(name: &str) -> bool {
    name == "cpu" || name == "memory" || is_huge_pages(name)
}

/// Huge pages can't be overcommitted: their limit is always their request.
fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn max(a: &Resources, b: &Resources) -> Resources {
    let mut larger = a.clone();
    for (name, amount) in b.iter() {
        larger.set(name, amount.max(a.get(name)));
    }
    larger
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(yaml: &str) -> PodSpec {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn containers_and_sidecars_add_up_and_one_pod_is_counted() {
        let spec = pod(r"
            initContainers:
            - {name: agent, restartPolicy: Always, resources: {requests: {cpu: 5m, memory: 8Mi}}}
            containers:
            - {name: a, resources: {requests: {cpu: 100m, memory: 1Gi}}}
            - {name: b, resources: {limits: {cpu: '0.2'}}}");
        let total = of_pod(&spec);
        assert_eq!(total.get("cpu"), 305);
        assert_eq!(total.get("memory"), 1032 * 1024 * 1024);
        assert_eq!(total.get(PODS), 1);
    }

    #[test]
    fn an_init_container_that_needs_more_than_all_others_decides() {
        let spec = pod(r"
            initContainers:
            - {name: agent, restartPolicy: Always, resources: {requests: {cpu: 5m}}}
            - {name: unpack, resources: {requests: {cpu: '2'}}}
            containers:
            - {name: a, resources: {requests: {cpu: 100m}}}");
        assert_eq!(of_pod(&spec).get("cpu"), 2005);
    }

    #[test]
    fn requests_of_the_pod_itself_replace_those_of_its_containers() {
        let spec = pod(r"
            resources: {requests: {cpu: '1', example.com/gpu: '7'}, limits: {cpu: '4', memory: 2Gi, hugepages-2Mi: 8Mi}}
            overhead: {cpu: 50m}
            containers:
            - {name: a, resources: {requests: {cpu: '3', example.com/gpu: '2'}}}");
        let total = of_pod(&spec);
        assert_eq!(total.get("cpu"), 1050);
        assert_eq!(total.get("memory"), 2 * 1024 * 1024 * 1024);
        assert_eq!(total.get("hugepages-2Mi"), 8 * 1024 * 1024);
        assert_eq!(total.get("example.com/gpu"), 2);
    }

    #[test]
    fn a_limit_of_the_pod_is_no_request_where_containers_request() {
        let spec = pod(r"
            resources: {limits: {cpu: '4', hugepages-2Mi: 8Mi}}
            containers:
            - {name: a, resources: {requests: {cpu: 100m, hugepages-2Mi: 4Mi}}}");
        let total = of_pod(&spec);
        assert_eq!(total.get("cpu"), 100);
        assert_eq!(total.get("hugepages-2Mi"), 8 * 1024 * 1024);
    }
}
