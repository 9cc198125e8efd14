//! What the audit log says of one load: when each job and each of its attempts was written, by the apiserver's clock.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::load::LONGEST_MS;
use super::quantiles::Sample;
use crate::bench::audit::{Event, is_write};
use crate::bench::identity::OPERATOR_USER;

/// An attempt that ran for this many times the longest usual duration is a straggler.
const STRAGGLER: f64 = 2.0;

/// One attempt. "Received" is when the apiserver received a request, "done" when its answer was complete.
#[derive(Clone, Debug, Default)]
struct Attempt {
    /// Its create by shed, received.
    created: Option<Timestamp>,
    /// The last write of the job's ledger before that, received.
    recorded: Option<Timestamp>,
    /// The status that says Running, done.
    runs: Option<Timestamp>,
    /// The status that says Succeeded: received, done.
    succeeded: Option<(Timestamp, Timestamp)>,
    /// Its first delete by shed, received.
    deleted: Option<Timestamp>,
}

/// One job.
#[derive(Clone, Debug, Default)]
struct Job {
    /// Its create, done.
    created: Option<Timestamp>,
    /// The first create of a pod of it, received.
    first_pod: Option<Timestamp>,
    /// By task and number.
    attempts: BTreeMap<(u32, u32), Attempt>,
    /// The last write of its ledger, received.
    recorded: Option<Timestamp>,
}

/// The jobs of one namespace, and all writes of the cluster meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    jobs: BTreeMap<String, Job>,
    /// From receipt to the complete answer, in milliseconds.
    writes: Vec<f64>,
    /// Patches of a pod's status without a body.
    bodiless: u64,
}

/// The figures of one load, with latencies in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latencies {
    /// Jobs that were created.
    pub jobs: u64,
    /// Pods that shed created.
    pub pods: u64,
    /// From the first create until every job was complete, in seconds.
    pub wall_seconds: f64,
    /// The apiserver's own writes: from receipt to the complete answer.
    pub writes: Sample,
    /// From a winner's visible end to the delete of each loser.
    pub kills: Sample,
    /// From a certain straggler to its clone.
    pub clones: Sample,
    /// From the ledger's write that records a clone to that clone.
    pub recorded_clones: Sample,
    /// From a new job to its first pod.
    pub first_pods: Sample,
    /// Clones that were created before their original was certain to be a straggler.
    pub early_clones: u64,
    /// Stragglers that never got a clone.
    pub without_clone: u64,
    /// Attempts that shed deleted before another of their task had succeeded.
    pub pruned: u64,
}

impl Timeline {
    /// Takes in one audit event. Only what happens in the namespace counts for jobs; all writes count for the
    /// apiserver.
    pub fn add(&mut self, event: &Event<'_>, namespace: &str) -> Result<()> {
        let code = event.response_status.as_ref().map_or(0, |own| own.code);
        let Some(object) = event.object_ref.as_ref() else {
            return Ok(());
        };
        let is_done = event.stage == "ResponseComplete" && (200..300).contains(&code);
        // A collection takes as long as it is large.
        if !is_done || !is_write(&event.verb) || event.verb == "deletecollection" {
            return Ok(());
        }
        let received = time(&event.request_received_timestamp)?;
        let done = time(&event.stage_timestamp)?;
        self.writes.push(millis(received, done));
        if object.namespace != namespace {
            return Ok(());
        }
        let is_shed = event.user.username == OPERATOR_USER;
        let what = (&*event.verb, &*object.resource, &*object.subresource);
        match what {
            ("create", "deadlinejobs", "") => {
                let job = self.jobs.entry(object.name.to_string()).or_default();
                job.created.get_or_insert(done);
            }
            ("create", "pods", "") if is_shed => {
                self.created(&object.name, received);
            }
            ("update" | "patch", "deadlinejobs", "status") if is_shed => {
                self.jobs
                    .entry(object.name.to_string())
                    .or_default()
                    .recorded = Some(received);
            }
            ("delete", "pods", "") if is_shed => {
                self.note(&object.name, received, |own| &mut own.deleted);
            }
            ("patch", "pods", "status") => {
                let body = event.request_object.as_ref();
                self.bodiless += u64::from(body.is_none());
                match body.and_then(|body| body["status"]["phase"].as_str()) {
                    Some("Running") => self.note(&object.name, done, |own| &mut own.runs),
                    Some("Succeeded") => {
                        self.note(&object.name, (received, done), |own| &mut own.succeeded);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn created(&mut self, pod: &str, received: Timestamp) {
        let Some((job, id)) = attempt_of(pod) else {
            return;
        };
        let job = self.jobs.entry(job.to_owned()).or_default();
        let first = job.first_pod.get_or_insert(received);
        *first = received.min(*first);
        let attempt = job.attempts.entry(id).or_default();
        if attempt.created.is_none() {
            (attempt.created, attempt.recorded) = (Some(received), job.recorded);
        }
    }

    /// Takes in the first time of its kind.
    fn note<T>(&mut self, pod: &str, time: T, of: fn(&mut Attempt) -> &mut Option<T>) {
        if let Some((job, id)) = attempt_of(pod) {
            let job = self.jobs.entry(job.to_owned()).or_default();
            of(job.attempts.entry(id).or_default()).get_or_insert(time);
        }
    }

    /// Patches of a pod's status that the log has without their body.
    pub fn bodiless(&self) -> u64 {
        self.bodiless
    }

    /// The latencies so far.
    pub fn latencies(&self) -> Latencies {
        let mut found = Found {
            writes: self.writes.clone(),
            ..Found::default()
        };
        for job in self.jobs.values() {
            found.rest.jobs += u64::from(job.created.is_some());
            if let (Some(created), Some(first)) = (job.created, job.first_pod) {
                found.first_pods.push(millis(created, first));
            }
            let created = job.attempts.values().filter(|own| own.created.is_some());
            found.rest.pods += created.count() as u64;
            let by_task = |one: &(&(u32, u32), &Attempt)| one.0.0;
            let all: Vec<_> = job.attempts.iter().collect();
            for task in all.chunk_by(|one, next| by_task(one) == by_task(next)) {
                let attempts: Vec<&Attempt> = task.iter().map(|(_, own)| *own).collect();
                found.kills_of(&attempts);
                found.clone_of(&attempts);
            }
        }
        found.latencies()
    }
}

/// Latencies that are being collected.
#[derive(Default)]
struct Found {
    writes: Vec<f64>,
    kills: Vec<f64>,
    clones: Vec<f64>,
    recorded_clones: Vec<f64>,
    first_pods: Vec<f64>,
    rest: Latencies,
}

impl Found {
    /// Of one task, its original first.
    fn kills_of(&mut self, attempts: &[&Attempt]) {
        let winner = attempts.iter().filter_map(|own| own.succeeded).min();
        let deletes = attempts.iter().filter(|own| own.succeeded.is_none());
        for delete in deletes.filter_map(|own| own.deleted) {
            match winner {
                // Its watch may show the end before the answer to the patch is complete.
                Some((received, done)) if delete >= received => {
                    self.kills.push(millis(done, delete));
                }
                _ => self.rest.pruned += 1,
            }
        }
    }

    fn clone_of(&mut self, attempts: &[&Attempt]) {
        let Some((original, clones)) = attempts.split_first() else {
            return;
        };
        let Some(runs) = original.runs else { return };
        let usual = f64::from(LONGEST_MS);
        let written = clones
            .iter()
            .filter_map(|own| own.recorded.zip(own.created));
        self.recorded_clones
            .extend(written.map(|(recorded, created)| millis(recorded, created)));
        let first = clones.iter().filter_map(|own| own.created).min();
        let ended = original.succeeded.map(|(_, done)| done);
        let lasted = ended.or(original.deleted).map(|end| millis(runs, end));
        match first.map(|created| signed_millis(runs, created) - usual) {
            Some(late) if late >= 0.0 => self.clones.push(late),
            Some(_) => self.rest.early_clones += 1,
            None if lasted.is_none_or(|lasted| lasted > STRAGGLER * usual) => {
                self.rest.without_clone += 1;
            }
            None => {}
        }
    }

    fn latencies(self) -> Latencies {
        Latencies {
            writes: Sample::of(self.writes),
            kills: Sample::of(self.kills),
            clones: Sample::of(self.clones),
            recorded_clones: Sample::of(self.recorded_clones),
            first_pods: Sample::of(self.first_pods),
            ..self.rest
        }
    }
}

/// Job, task and number in the name of a pod of a DeadlineJob: `<job>-<hash>-<task>-<attempt>`.
fn attempt_of(pod: &str) -> Option<(&str, (u32, u32))> {
    let (rest, attempt) = pod.rsplit_once('-')?;
    let (rest, task) = rest.rsplit_once('-')?;
    let (job, _) = rest.rsplit_once('-')?;
    Some((job, (task.parse().ok()?, attempt.parse().ok()?)))
}

fn time(text: &str) -> Result<Timestamp> {
    text.parse()
        .with_context(|| format!("{text} is not a time of the audit log"))
}

/// None is negative: the apiserver's clock stamps both ends, but not in the order of their effects.
fn millis(from: Timestamp, to: Timestamp) -> f64 {
    signed_millis(from, to).max(0.0)
}

fn signed_millis(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An event that was received at `at` seconds and done a millisecond later.
    fn event(user: &str, verb: &str, resource: &str, name: &str, at: f64) -> Value {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let stamp = |second: f64| format!("2030-01-01T00:00:{second:09.6}Z");
        json!({"stage": "ResponseComplete", "verb": verb, "user": {"username": user},
            "objectRef": {"resource": resource, "subresource": subresource, "namespace": "n", "name": name},
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": stamp(at), "stageTimestamp": stamp(at + 0.001)})
    }

    fn phase(name: &str, phase: &str, at: f64) -> Value {
        let mut event = event("admin", "patch", "pods/status", name, at);
        event["requestObject"] = json!({"status": {"phase": phase}});
        event
    }

    fn timeline(events: &[Value]) -> Timeline {
        let mut timeline = Timeline::default();
        for event in events {
            let text = event.to_string();
            let event: Event<'_> = serde_json::from_str(&text).unwrap();
            timeline.add(&event, "n").unwrap();
        }
        timeline
    }

    /// Of job `j`: task 0 has a straggler and a clone that wins, task 1 has neither.
    fn history() -> Vec<Value> {
        let shed = OPERATOR_USER;
        vec![
            event("bench", "create", "deadlinejobs", "j", 1.0),
            event(shed, "create", "pods", "j-00ff-0-0", 1.011),
            event(shed, "create", "pods", "j-00ff-1-0", 1.021),
            phase("j-00ff-0-0", "Running", 2.0),
            phase("j-00ff-1-0", "Running", 2.0),
            phase("j-00ff-1-0", "Succeeded", 7.0),
            event(shed, "update", "deadlinejobs/status", "j", 7.091),
            event(shed, "create", "pods", "j-00ff-0-1", 7.101),
            phase("j-00ff-0-1", "Running", 8.0),
            phase("j-00ff-0-1", "Succeeded", 13.0),
            event(shed, "delete", "pods", "j-00ff-0-0", 13.031),
            event(shed, "delete", "pods", "j-00ff-0-0", 14.0),
        ]
    }

    #[test]
    fn latencies_begin_at_complete_answers_and_end_at_receipts() {
        let found = timeline(&history()).latencies();
        let only = |sample: &Sample| (sample.count, sample.most.round());
        assert_eq!(only(&found.kills), (1, 30.0));
        assert_eq!(only(&found.clones), (1, 100.0));
        assert_eq!(only(&found.recorded_clones), (1, 10.0));
        assert_eq!(only(&found.first_pods), (1, 10.0));
        assert_eq!(only(&found.writes), (12, 1.0));
        assert_eq!((found.jobs, found.pods, found.pruned), (1, 3, 0));
        assert_eq!((found.early_clones, found.without_clone), (0, 0));
    }

    #[test]
    fn early_pruned_and_missing_clones_are_counted() {
        let shed = OPERATOR_USER;
        let mut early = history();
        early[7] = event(shed, "create", "pods", "j-00ff-0-1", 5.0);
        assert_eq!(timeline(&early).latencies().early_clones, 1);
        let mut pruned = history();
        pruned[10] = event(shed, "delete", "pods", "j-00ff-0-0", 12.9);
        pruned.truncate(11);
        let found = timeline(&pruned).latencies();
        assert_eq!((found.pruned, found.kills.count), (1, 0));
        let mut without: Vec<Value> = history().drain(..6).collect();
        without.push(phase("j-00ff-0-0", "Succeeded", 20.0));
        assert_eq!(timeline(&without).latencies().without_clone, 1);
    }

    #[test]
    fn refused_requests_and_those_of_other_namespaces_are_left_out() {
        let mut refused = event(OPERATOR_USER, "create", "pods", "j-00ff-0-0", 1.0);
        refused["responseStatus"]["code"] = json!(429);
        let mut elsewhere = event(OPERATOR_USER, "create", "pods", "j-00ff-0-0", 1.0);
        elsewhere["objectRef"]["namespace"] = json!("other");
        let found = timeline(&[refused, elsewhere]).latencies();
        assert_eq!((found.pods, found.writes.count), (0, 1));
    }

    #[test]
    fn a_status_without_a_body_is_counted() {
        let bare = event("admin", "patch", "pods/status", "j-00ff-0-0", 1.0);
        assert_eq!(timeline(&[bare]).bodiless(), 1);
        assert_eq!(timeline(&history()).bodiless(), 0);
    }
}
