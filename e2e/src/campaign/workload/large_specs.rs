//! Workloads of size: specifications at and above what is taken, and an object that a user makes
//! too large.

use serde_json::{Value, json};
use shed::api::DeadlineJob;
use shed::size::{SPEC_MAX, bytes};

use super::{of_template, tasks};

/// A specification of one MB: refused.
pub const HUGE: &str = "huge";
/// One byte more than is taken: refused.
pub const ABOVE: &str = "above";
/// Exactly what is taken: runs.
pub const BRIM: &str = "brim";
/// The job whose status a user edits.
pub const BLOATED: &str = "bloated";
/// Bytes of the arguments of [`HUGE`].
const MEGABYTE: usize = 1_000_000;

/// A large job, one at the bound, one above it, and ordinary ones.
pub fn big_specs(template: &Value) -> Vec<Value> {
    let large = |name: &str, args: usize| {
        let spec = tasks(2, "10m");
        let mut job = of_template(name, spec, template);
        job["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["x".repeat(args)]);
        job
    };
    let mut huge = large(HUGE, 0);
    huge["spec"]["template"]["spec"]["containers"][0]["args"] = arguments(MEGABYTE);
    // Absent fields have defaults, which count as well.
    let rest = spec_bytes(&large(BRIM, 0));
    let normal = tasks(6, "10m");
    vec![
        huge,
        large(ABOVE, SPEC_MAX - rest + 1),
        large(BRIM, SPEC_MAX - rest),
        of_template("normal", normal, template),
    ]
}

/// Arguments of this many bytes. Each is short enough for the schema, which can't add them up.
pub fn arguments(bytes: usize) -> Value {
    let longest = 100_000;
    let whole = vec!["x".repeat(longest); bytes / longest];
    let rest = "x".repeat(bytes % longest);
    whole.into_iter().chain([rest]).collect()
}

/// A job whose status a user edits while it runs, and an ordinary one.
pub fn bloated(template: &Value) -> Vec<Value> {
    let slow = json!({"completions": 8, "parallelism": 2, "deadline": {"within": "10m"}});
    let normal = tasks(6, "10m");
    vec![
        of_template(BLOATED, slow, template),
        of_template("normal", normal, template),
    ]
}

fn spec_bytes(job: &Value) -> usize {
    let job: Result<DeadlineJob, _> = serde_json::from_value(job.clone());
    job.map_or(0, |job| bytes(&job.spec))
}

/// A job that ended before the operator starts, as the operator leaves it.
pub fn finished(template: &Value, name: &str) -> (Value, Value) {
    let deadline = "2126-01-01T00:00:00Z";
    let spec = json!({"completions": 1, "deadline": {"at": deadline}});
    let then = "2026-01-01T00:00:00Z";
    let exact = "2026-01-01T00:00:00.000000Z";
    // In the operator's words, or it would write its own.
    let is_so = |type_: &str, reason: &str, message: &str| {
        json!({"type": type_, "status": "True", "reason": reason, "message": message,
            "observedGeneration": 1, "lastTransitionTime": then})
    };
    let all = "all 1 tasks have a winner";
    let status = json!({
        "phase": "Complete", "observedGeneration": 1, "succeeded": 1, "completedIndexes": "0",
        "startTime": then, "completionTime": then, "deadline": deadline, "pocd": "1.000",
        "attempts": {"originals": 1, "won": 1},
        "conditions": [
            is_so("SuccessCriteriaMet", "CompletionsReached", all),
            is_so("Complete", "CompletionsReached", all),
            is_so("DeadlineMet", "InTime", ""),
        ],
        "ledger": {"form": 1, "ending": "Complete", "finished": true, "revision": 4,
            "firstPass": exact, "activeSince": exact, "started": exact, "lastWin": exact,
            "ended": exact, "endedRunsMs": [1000]},
    });
    (of_template(name, spec, template), status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shed::api::Ledger;
    use shed::validate::validate;

    /// The apiserver's part of a job's metadata.
    fn accepted(mut job: Value) -> DeadlineJob {
        job["metadata"]["uid"] = json!("u");
        job["metadata"]["namespace"] = json!("n");
        job["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn specifications_are_at_the_bound_and_just_above() {
        let template = json!({"spec": {"containers": [{"name": "task"}]}});
        for job in big_specs(&template).into_iter().map(accepted) {
            let size = bytes(&job.spec);
            let verdict = validate(&job).map(drop).map_err(|error| error.to_string());
            match job.metadata.name.as_deref() {
                Some(HUGE) => assert!(size > MEGABYTE && verdict.is_err(), "{size}"),
                Some(ABOVE) => {
                    assert_eq!(size, SPEC_MAX + 1);
                    let field = "spec.template.spec.containers[0].args";
                    assert!(verdict.unwrap_err().contains(field));
                }
                Some(BRIM) => assert_eq!((size, verdict), (SPEC_MAX, Ok(()))),
                _ => assert_eq!(verdict, Ok(())),
            }
        }
    }

    #[test]
    fn a_finished_job_is_one_to_the_operator() {
        let template = json!({"spec": {"containers": [{"name": "task"}]}});
        let (mut job, status) = finished(&template, "old");
        job["status"] = status;
        let job = accepted(job);
        let ledger = Ledger::from_status(job.status.as_ref()).unwrap();
        assert!(ledger.finished && ledger.tasks.is_empty() && ledger.done.len() == 1);
    }
}
