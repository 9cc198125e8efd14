//! How the jobs of a workload are to end.

use super::large_specs::{ABOVE, BLOATED, BRIM, HUGE};
use super::{BYSTANDER, DENIED, NARROW, NEIGHBOR, UNPLACEABLE, Workload, brings};
use crate::campaign::fault::{Fault, Point};

/// How a job is to end if no fault keeps it beyond its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Name of the job.
    pub job: &'static str,
    /// Its last condition and the reason of that; none if it is gone.
    pub end: Option<(&'static str, &'static str)>,
    /// Whether it must have said that its attempts are blocked.
    pub is_blocked: bool,
    /// The words that the message of the condition must contain.
    pub names: &'static str,
}

impl Expected {
    fn new(job: &'static str, end: Option<(&'static str, &'static str)>) -> Self {
        Self {
            job,
            end,
            is_blocked: false,
            names: "",
        }
    }
}

fn complete(job: &'static str) -> Expected {
    Expected::new(job, Some(("Complete", "")))
}

fn failed(job: &'static str, reason: &'static str) -> Expected {
    Expected::new(job, Some(("Failed", reason)))
}

impl Workload {
    /// How the jobs are to end, those included that the fault brings once it `struck`.
    pub fn expected(self, struck: Option<Point>) -> Vec<Expected> {
        let mut expected = self.ends();
        if struck.is_some_and(|point| point.fault.has_neighbor()) {
            expected.push(complete(NEIGHBOR));
        }
        let Some(point) = struck.filter(|point| brings(point.fault)) else {
            return expected;
        };
        expected.push(complete(BYSTANDER));
        if point.fault == Fault::DeniedCreates {
            let end = match point.denies_for_good() {
                true => failed(DENIED, "DeadlineMissed"),
                false => complete(DENIED),
            };
            expected.push(Expected {
                is_blocked: point.denies_for_good(),
                ..end
            });
        }
        expected
    }

    fn ends(self) -> Vec<Expected> {
        match self {
            Self::Plain => vec![complete("plain")],
            Self::Clones => vec![complete("clones")],
            Self::Failures => vec![
                failed("retries", "FailedIndexes"),
                failed("late", "DeadlineMissed"),
                Expected::new("dropped", None),
                Expected::new("short-lived", None),
            ],
            Self::Adopted => vec![
                complete("adopted"),
                failed("doomed", "BackoffLimitExceeded"),
                complete("bare"),
            ],
            Self::Mixed => vec![complete("long"), complete("short")],
            Self::Unplaceable => {
                let mut expected = vec![complete("normal"), complete(BYSTANDER)];
                expected.extend(UNPLACEABLE.map(|job| Expected {
                    is_blocked: true,
                    ..failed(job, "DeadlineMissed")
                }));
                expected
            }
            Self::Quota => vec![complete(NARROW), complete(BYSTANDER)],
            Self::BigSpec => {
                let refused = |job| Expected {
                    names: "spec.template.spec.containers[0].args",
                    ..failed(job, "InvalidSpec")
                };
                vec![
                    refused(HUGE),
                    refused(ABOVE),
                    complete(BRIM),
                    complete("normal"),
                ]
            }
            Self::ManyFinished => vec![complete("live")],
            Self::Bloated => vec![complete(BLOATED), complete("normal")],
        }
    }
}
