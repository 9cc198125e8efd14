//! Attempts that scheduling gates hold back. shed sets no gates: the controller that set one removes it, as a queue does
//! when its quota admits the pod.

use crate::cluster::pod::{AttemptId, PodFacts};
use crate::job::view::JobView;

/// The gate of an attempt that may still win.
pub fn of_some(view: &JobView) -> Option<&str> {
    let lives = |id: &AttemptId| {
        let entry = view.ledger.attempt(id.0, id.1);
        entry.is_some_and(|entry| entry.kill.is_none())
    };
    let mut pods = view.pods.iter().filter(|(id, _)| lives(id));
    pods.find_map(|(_, pod)| gate(pod))
}

/// The same if gates hold back every attempt of this task that has not ended. Of all tasks if none is named.
pub fn of_all(view: &JobView, task: Option<u32>) -> Option<&str> {
    let pods = view.pods.iter();
    let of_task = pods.filter(|(id, pod)| task.is_none_or(|task| task == id.0) && !pod.terminal);
    let gates: Option<Vec<&str>> = of_task.map(|(_, pod)| gate(pod)).collect();
    gates?.first().copied()
}

fn gate(pod: &PodFacts) -> Option<&str> {
    let waits = pod.node.is_none() && !pod.terminal && !pod.identity.deleting;
    pod.scheduling.gate.as_deref().filter(|_| waits)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shed_core::snapshot::AttemptKind;
    use shed_core::time::Instant;

    use super::*;
    use crate::api::Ledger;
    use crate::fixtures;
    use crate::validate::validate;

    /// Two tasks whose pods have these specifications.
    fn view(specs: [&str; 2]) -> JobView {
        let mut ledger = Ledger::default();
        let job = Arc::new(validate(&fixtures::job("completions: 2")).unwrap());
        for task in [0, 1] {
            let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
            ledger.launch(&launch, Instant(0));
        }
        let mut view = JobView::new(job, ledger, Instant(0), Instant(0));
        for (task, spec) in (0..).zip(specs) {
            let pod = format!(
                "{{metadata: {{labels: {{shed.dev/job-uid: j, shed.dev/task: '{task}', \
                 shed.dev/attempt: '0'}}}}, spec: {{{spec} containers: [{{name: c}}]}}}}"
            );
            let pod = PodFacts::from_pod(&serde_saphyr::from_str(&pod).unwrap(), Instant(0));
            view.pods.insert((task, 0), Arc::new(pod));
        }
        view
    }

    #[test]
    fn a_gate_is_named_while_it_holds_attempts_back() {
        let gated = "schedulingGates: [{name: kueue.x-k8s.io/topology}],";
        let gate = Some("kueue.x-k8s.io/topology");
        let both = view([gated, gated]);
        assert_eq!((of_some(&both), of_all(&both, None)), (gate, gate));
        let one = view([gated, "nodeName: n,"]);
        assert_eq!((of_some(&one), of_all(&one, None)), (gate, None));
        assert_eq!((of_all(&one, Some(0)), of_all(&one, Some(1))), (gate, None));
        let none = view(["", ""]);
        assert_eq!((of_some(&none), of_all(&none, None)), (None, None));
    }
}
