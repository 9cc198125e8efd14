//! The label and annotations of one Namespace, as values. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::{
    self, ANNOTATION_ACTIVE_JOBS_MAX, ANNOTATION_CLONE_BUDGET, ANNOTATION_CLONES, CLONES_STOP,
    JOBS_RUN, JOBS_WATCH, LABEL_JOBS, LABEL_SHARE,
};

/// Characters of an invalid value that are kept.
const VALUE_MAX: usize = 64;
/// The smallest and the largest weight. Beyond them a weight counts as the nearest of the two, because a million to one
/// is as good as everything, and sums of weights stay exact enough.
const WEIGHTS: [f64; 2] = [0.001, 1000.0];
/// The largest limit of active jobs.
const ACTIVE_JOBS_MAX: u32 = 1_000_000;

/// What administrators set for one namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// New clones are stopped.
    pub stops_clones: bool,
    /// The weight in the division of capacity; absent means 1.
    pub weight: Option<f64>,
    /// The limit of clones, as a share of a job's own slot-seconds.
    pub clone_budget: Option<f64>,
    /// The number of jobs that may be active.
    pub active_jobs_max: Option<u32>,
    /// Jobs without `spec.managedBy` are watched, and not run.
    pub watches_jobs: bool,
    /// Values that are not used as they are.
    pub faults: Vec<Fault>,
}

/// A value that shed does not use as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The label or the annotation.
    pub key: &'static str,
    /// Its value, or the beginning of it.
    pub value: Arc<str>,
    /// The value that holds instead, and the fix.
    pub instead: &'static str,
}

impl Fault {
    /// Whether the value is a label's, and not an annotation's.
    pub fn is_label(&self) -> bool {
        [LABEL_SHARE, LABEL_JOBS].contains(&self.key)
    }

    /// What is wrong, and the fix.
    pub fn words(&self) -> String {
        let place = match self.is_label() {
            true => "label",
            false => "annotation",
        };
        let Self {
            key,
            value,
            instead,
        } = self;
        format!("{place} {key}: invalid value `{value}`: {instead}")
    }
}

/// A value, or the text about what holds instead. A value can be both: one that is too large counts as the largest.
type Read<T> = (Option<T>, Option<&'static str>);

impl Settings {
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        let mut faults = Vec::new();
        let (labels, annotations) = (metadata.labels.as_ref(), metadata.annotations.as_ref());
        let stops = setting(annotations, ANNOTATION_CLONES, stop, &mut faults);
        Self {
            stops_clones: stops.is_some(),
            weight: setting(labels, LABEL_SHARE, weight, &mut faults).filter(|one| *one != 1.0),
            clone_budget: setting(annotations, ANNOTATION_CLONE_BUDGET, budget, &mut faults),
            active_jobs_max: setting(annotations, ANNOTATION_ACTIVE_JOBS_MAX, jobs, &mut faults),
            watches_jobs: setting(labels, LABEL_JOBS, chosen, &mut faults).is_some(),
            faults,
        }
    }
}

fn setting<T>(
    values: Option<&BTreeMap<String, String>>,
    key: &'static str,
    read: impl FnOnce(&str) -> Read<T>,
    faults: &mut Vec<Fault>,
) -> Option<T> {
    let text = values?.get(key)?;
    let (value, instead) = read(text);
    faults.extend(instead.map(|instead| Fault {
        key,
        value: text.chars().take(VALUE_MAX).collect::<String>().into(),
        instead,
    }));
    value
}

fn stop(text: &str) -> Read<()> {
    match text == CLONES_STOP {
        true => (Some(()), None),
        false => (
            None,
            Some("it has no effect: use stop, or remove the annotation"),
        ),
    }
}

/// The value `run` is the admission policy's, and no setting of the operator.
fn chosen(text: &str) -> Read<()> {
    match text {
        JOBS_WATCH => (Some(()), None),
        JOBS_RUN => (None, None),
        _ => (
            None,
            Some("it has no effect: use run or watch, or remove the label"),
        ),
    }
}

/// Zero is no weight: a namespace that may use nothing has a ResourceQuota.
fn weight(text: &str) -> Read<f64> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    let [least, most] = WEIGHTS;
    match number {
        Some(weight) if weight > most => (
            Some(most),
            Some("it counts as 1000, the largest weight: use a number from 0.001 to 1000"),
        ),
        Some(weight) if weight < least => (
            Some(least),
            Some("it counts as 0.001, the smallest weight: use a number from 0.001 to 1000"),
        ),
        Some(weight) => (Some(weight), None),
        None => (
            None,
            Some("the weight is 1: use a number from 0.001 to 1000, or remove the label"),
        ),
    }
}

fn budget(text: &str) -> Read<f64> {
    let share = text.parse::<f64>().ok();
    match share.filter(|share| api::is_clone_budget(*share)) {
        Some(share) => (Some(share), None),
        None => (
            None,
            Some(
                "the cluster's limit holds: use a share from 0 to 20 such as 0.2, or remove the annotation",
            ),
        ),
    }
}

fn jobs(text: &str) -> Read<u32> {
    match api::parse_whole(text, ACTIVE_JOBS_MAX) {
        Ok(jobs) => (Some(jobs), None),
        Err(_) => (
            None,
            Some(
                "the number of active jobs has no limit: use a whole number from 1 such as 20, or remove the annotation",
            ),
        ),
    }
}
