//! Indexes in a job's public fields are not repeated in its ledger, because a list of 100 000
//! scattered ones takes some 600 KB. Pure.

use shed_core::index_set::{IndexSet, ParseIndexSetError};

use crate::api::{DeadlineJobStatus, Ledger, TASKS_MAX};

/// Removes from the ledger the lists that the public fields contain.
pub(super) fn shorten(status: &mut DeadlineJobStatus) -> Result<(), ParseIndexSetError> {
    let Some(ledger) = &mut status.ledger else {
        return Ok(());
    };
    let done = beyond(ledger, &ledger.done, &status.completed_indexes)?;
    ledger.failed = beyond(ledger, &ledger.failed, &status.failed_indexes)?;
    ledger.done = done;
    Ok(())
}

/// Restores in the ledger the lists of the public fields.
pub(super) fn complete(status: &mut DeadlineJobStatus) -> Result<(), ParseIndexSetError> {
    let Some(ledger) = &mut status.ledger else {
        return Ok(());
    };
    let done = with(ledger, &ledger.done, &status.completed_indexes)?;
    ledger.failed = with(ledger, &ledger.failed, &status.failed_indexes)?;
    ledger.done = done;
    ledger.counts = status.attempts;
    Ok(())
}

fn beyond(ledger: &Ledger, whole: &IndexSet, public: &str) -> Result<IndexSet, ParseIndexSetError> {
    let public = IndexSet::parse_below(public, TASKS_MAX)?;
    if ledger.segments.is_empty() && *whole == public {
        return Ok(IndexSet::new());
    }
    let mut rest = IndexSet::new();
    for index in whole.iter() {
        if is_split(ledger, index.0) || !public.contains(index) {
            rest.insert(index);
        }
    }
    Ok(rest)
}

fn with(ledger: &Ledger, rest: &IndexSet, public: &str) -> Result<IndexSet, ParseIndexSetError> {
    let public = IndexSet::parse_below(public, TASKS_MAX)?;
    if ledger.segments.is_empty() && rest.is_empty() {
        return Ok(public);
    }
    let mut whole = rest.clone();
    for index in public.iter().filter(|index| !is_split(ledger, index.0)) {
        whole.insert(index);
    }
    Ok(whole)
}

/// Whether the ledger's number of the task is that of its first segment. The public fields list
/// whole tasks.
fn is_split(ledger: &Ledger, index: u32) -> bool {
    ledger.segments.contains_key(&index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::api::DeadlineJobStatus;

    fn read(value: Value) -> DeadlineJobStatus {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_list_with_more_indexes_than_tasks_is_refused() {
        let of = |completed: &str, done: &str| {
            let ledger = json!({"form": 1, "done": done});
            let status = json!({"completedIndexes": completed, "ledger": ledger});
            serde_json::from_value::<DeadlineJobStatus>(status)
        };
        assert!(of("0-99999", "").is_ok());
        for (completed, done) in [
            ("0-4294967295", "1"),
            ("0-100000", "1"),
            ("0", "0-4294967295"),
        ] {
            assert!(of(completed, done).is_err(), "{completed} {done}");
        }
    }

    fn written(status: &DeadlineJobStatus) -> Value {
        serde_json::to_value(status).unwrap()
    }

    #[test]
    fn a_list_is_written_once() {
        let old = json!({"completedIndexes": "0-3,7", "failedIndexes": "5",
            "ledger": {"done": "0-3,7", "failed": "5"}});
        let status = read(old);
        let new = written(&status);
        assert_eq!(new["completedIndexes"], "0-3,7");
        assert_eq!(new["ledger"].get("done"), None);
        assert_eq!(new["ledger"].get("failed"), None);
        assert_eq!(read(new), status);
    }

    #[test]
    fn what_the_public_fields_do_not_say_stays_in_the_ledger() {
        // Indexes from spec.completions on, after it was lowered.
        let status = read(json!({"completedIndexes": "0-3", "ledger": {"done": "0-3,7-8"}}));
        let new = written(&status);
        assert_eq!(new["ledger"]["done"], "7-8");
        assert_eq!(read(new).ledger.unwrap().done.to_string(), "0-3,7-8");
        // Task 0 is not done as a whole, and its first segment has not failed.
        let part = |index, start, end| json!({"index": index, "task": 0, "start": start, "end": end, "total": 9});
        let split = read(json!({"completedIndexes": "1", "failedIndexes": "0",
            "ledger": {"done": "0-1", "failed": "2", "segments": [part(0, 0, 4), part(2, 4, 9)]}}));
        let again = read(written(&split));
        assert_eq!(again, split);
        let ledger = again.ledger.unwrap();
        let lists = (ledger.done.to_string(), ledger.failed.to_string());
        assert_eq!(lists, ("0-1".to_owned(), "2".to_owned()));
    }

    #[test]
    fn a_list_that_is_none_is_not_taken_for_an_empty_one() {
        let value = json!({"completedIndexes": "3,1", "ledger": {"done": "1"}});
        let error = serde_json::from_value::<DeadlineJobStatus>(value).unwrap_err();
        assert!(error.to_string().contains("`1` is not an index"), "{error}");
    }

    proptest! {
        #[test]
        fn whatever_is_done_is_read_again(done in any::<u16>(), failed in any::<u16>(), below in 0u32..16) {
            let list = |bits: u16, below: u32| {
                let mut set = shed_core::index_set::IndexSet::new();
                for index in (0..below).filter(|index| bits >> index & 1 == 1) {
                    set.insert(shed_core::ids::TaskIndex(index));
                }
                set.to_string()
            };
            let status = read(json!({
                "completedIndexes": list(done, below), "failedIndexes": list(failed & !done, below),
                "ledger": {"done": list(done, 16), "failed": list(failed & !done, 16)},
            }));
            prop_assert_eq!(read(written(&status)), status);
        }
    }
}
