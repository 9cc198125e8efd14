//! Decodes objects as the apiserver holds them into jobs. Fields of a newer operator or a newer
//! schema must harm no other job. Pure.

use kube::api::ObjectMeta;
use serde_json::Value;

use crate::api::unknown_fields;
use crate::api::{DeadlineJob, DeadlineJobSpec, DeadlineJobStatus};

/// A job that could be read.
#[derive(Debug)]
pub struct Read {
    /// The job.
    pub job: DeadlineJob,
    /// Fields of its specification that are not known here, such as `spec.novel`.
    pub unknown_fields: Vec<String>,
}

/// Decodes a job from its parts.
pub fn read(metadata: ObjectMeta, spec: &Value, status: &Value) -> Result<Read, String> {
    let (spec, unknown) = unknown_fields::read::<DeadlineJobSpec>(spec)
        .map_err(|problem| format!("spec{problem}"))?;
    let (status, _) = unknown_fields::read::<Option<DeadlineJobStatus>>(status)
        .map_err(|problem| format!("status{}", problem.trim_start_matches(": ")))?;
    let unknown = unknown.iter().map(|field| format!("spec.{field}"));
    Ok(Read {
        job: DeadlineJob {
            metadata,
            spec,
            status,
        },
        unknown_fields: unknown.collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::Ledger;
    use crate::fixtures;

    /// Decodes the job after these changes.
    fn read(job: &DeadlineJob, changes: &[(&str, Value)]) -> Result<Read, String> {
        let object = fixtures::changed(job, changes);
        super::read(job.metadata.clone(), &object["spec"], &object["status"])
    }

    #[test]
    fn a_job_is_read_as_it_is() {
        let job = fixtures::job("");
        let read = read(&job, &[]).unwrap();
        assert_eq!(read.job, job);
        assert!(read.unknown_fields.is_empty(), "{:?}", read.unknown_fields);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_whole_name_of_its_field() {
        let error = |place: &str, value| {
            let mut job = fixtures::job("");
            job.status = Some(DeadlineJobStatus {
                ledger: Some(Ledger::default()),
                ..DeadlineJobStatus::default()
            });
            read(&job, &[(place, value)]).unwrap_err()
        };
        let said = error("/spec/idempotency", json!("Twice"));
        assert!(
            said.starts_with("spec.idempotency: unknown variant `Twice`"),
            "{said}"
        );
        let said = error("/status/ledger/ending", json!("Postponed"));
        assert!(
            said.starts_with("status.ledger.ending: unknown variant"),
            "{said}"
        );
        let said = error("/spec", Value::Null);
        assert!(said.starts_with("spec: invalid type: null"), "{said}");
    }

    #[test]
    fn unknown_fields_are_named_and_do_not_prevent_decoding() {
        let changes = [
            ("/spec/novel", json!(5)),
            ("/spec/speculation/novel", json!(true)),
        ];
        let read = read(&fixtures::job(""), &changes).unwrap();
        assert_eq!(
            read.unknown_fields,
            ["spec.novel", "spec.speculation.novel"]
        );
    }
}
