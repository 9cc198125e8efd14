use serde_json::{Value, json};

use super::*;
use crate::api::DeadlineJob;
use crate::cluster::Seen;
use crate::fixtures;

const UNREADABLE: (&str, &str) = ("/spec/onMiss", "Postpone");

fn job(uid: &str) -> DeadlineJob {
    let mut job = fixtures::job("");
    job.metadata.name = Some(uid.to_owned());
    job.metadata.uid = Some(uid.to_owned());
    job
}

fn readable(uid: &str) -> JobObject {
    fixtures::object(&job(uid), &[])
}

fn unreadable(uid: &str) -> JobObject {
    let (place, value) = UNREADABLE;
    fixtures::object(&job(uid), &[(place, json!(value))])
}

/// Uids of the decodable jobs, of the undecodable ones, and of all that exist.
fn seen(stores: &Stores) -> [Vec<String>; 3] {
    let sorted = |uids: Vec<Option<String>>| {
        let mut uids: Vec<String> = uids.into_iter().flatten().collect();
        uids.sort();
        uids
    };
    let read = stores.jobs.store.state();
    let faults = stores.jobs.faults();
    [
        sorted(read.iter().map(|job| job.meta().uid.clone()).collect()),
        sorted(
            faults
                .iter()
                .map(|fault| fault.metadata.uid.clone())
                .collect(),
        ),
        sorted(stores.jobs.staying_uids().into_iter().map(Some).collect()),
    ]
}

fn uids(words: [&str; 3]) -> [Vec<String>; 3] {
    words.map(|words| words.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn a_job_that_can_not_be_read_keeps_no_other_from_being_read() {
    let (stores, _writer) = Stores::of_objects(vec![unreadable("a"), readable("b")], vec![]);
    assert_eq!(seen(&stores), uids(["b", "a", "a b"]));
    let problem = stores.jobs.faults()[0].problem.clone().unwrap();
    assert!(
        problem.starts_with("spec.onMiss: unknown variant `Postpone`"),
        "{problem}"
    );
}

#[test]
fn a_job_is_dropped_while_it_is_unreadable() {
    let (stores, mut writer) = Stores::of_objects(vec![readable("a"), readable("b")], vec![]);
    let (touched, _) = stores.apply_job_event(&mut writer, Event::Apply(unreadable("a")));
    assert_eq!(seen(&stores), uids(["b", "a", "a b"]));
    assert_eq!(
        touched[0].meta().uid.as_deref(),
        Some("a"),
        "who waits for it is reported"
    );
    let (touched, _) = stores.apply_job_event(&mut writer, Event::Apply(readable("a")));
    assert_eq!(seen(&stores), uids(["a b", "", "a b"]));
    assert_eq!(touched[0].meta().uid.as_deref(), Some("a"));
}

#[test]
fn what_is_gone_or_on_its_way_out_does_not_stay() {
    let (stores, mut writer) = Stores::of_objects(vec![unreadable("a"), unreadable("b")], vec![]);
    stores.apply_job_event(&mut writer, Event::Delete(unreadable("a")));
    assert_eq!(seen(&stores), uids(["", "b", "b"]));
    let mut leaving = unreadable("b");
    leaving.meta_mut().deletion_timestamp = Some(crate::clock::time(crate::clock::now()));
    stores.apply_job_event(&mut writer, Event::Apply(leaving));
    assert_eq!(seen(&stores), uids(["", "b", ""]));
}

#[test]
fn a_new_list_replaces_the_old_one_when_it_is_complete() {
    let (stores, mut writer) = Stores::of_objects(vec![unreadable("a"), readable("b")], vec![]);
    for event in [Event::Init, Event::InitApply(unreadable("b"))] {
        stores.apply_job_event(&mut writer, event);
        assert_eq!(seen(&stores), uids(["b", "a", "a b"]), "as before");
    }
    stores.apply_job_event(&mut writer, Event::InitDone);
    assert_eq!(seen(&stores), uids(["", "b", "b"]));
}

#[test]
fn a_job_with_an_unknown_field_is_read_and_the_field_is_named() {
    let novel = fixtures::object(&job("a"), &[("/spec/novel", Value::from(1))]);
    let (stores, mut writer) = Stores::of_objects(vec![novel], vec![]);
    assert_eq!(seen(&stores), uids(["a", "a", "a"]));
    assert_eq!(stores.jobs.faults()[0].unknown_fields, ["spec.novel"]);
    stores.apply_job_event(&mut writer, Event::Apply(readable("a")));
    assert!(stores.jobs.faults().is_empty());
}

#[test]
fn the_newest_changes_are_known_until_the_job_goes() {
    let at = |uid: &str, version: &str| {
        let version = json!(version);
        fixtures::object(&job(uid), &[("/metadata/resourceVersion", version)])
    };
    let (stores, mut writer) = Stores::of_objects(vec![at("a", "7"), at("b", "6")], vec![]);
    let newest = |stores: &Stores| {
        let newest = stores.newest(Versioned::DeadlineJobs);
        let name = |seen: Option<Seen>| seen.map(|seen| (seen.name, seen.version));
        (newest.version, name(newest.changed), name(newest.deleted))
    };
    let seen = |name: &str, version| Some((name.to_owned(), version));
    assert_eq!(newest(&stores), (7, seen("a", 7), None));
    stores.apply_job_event(&mut writer, Event::Apply(at("b", "8")));
    assert_eq!(newest(&stores), (8, seen("b", 8), None));
    stores.apply_job_event(&mut writer, Event::Delete(at("a", "9")));
    assert_eq!(newest(&stores), (9, seen("b", 8), seen("a", 9)));
    stores.apply_job_event(&mut writer, Event::Delete(at("b", "10")));
    assert_eq!(newest(&stores), (10, None, seen("b", 10)));
}
