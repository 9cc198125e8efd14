//! Faults by name, and their time in a run.

use std::time::Duration;

use clap::ValueEnum;
use http::Method;

use super::proxy::Seen;
use crate::command::option_name;

/// The fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// The operator is killed after the k-th write was committed, before it has the answer.
    Crash,
    /// The connection breaks after the k-th write was committed.
    LostAnswer,
    /// The watch of pods is held 5 to 30 s at the k-th notification.
    StalePods,
    /// The watches of DeadlineJobs and Jobs are held 5 to 30 s at the k-th notification.
    StaleJobs,
    /// All of them are held 5 to 30 s at the k-th notification of any.
    StaleBoth,
    /// The k-th notification is replaced by 410, so that the operator must list again.
    Gone,
    /// The watch of pods says nothing from the k-th notification on, without an end.
    SilentWatch,
    /// A client edits labels of jobs and pods 20 times a second, and every third write is
    /// answered with 409 instead of being carried out.
    Conflicts,
    /// For 20 s half of all calls are answered with 429, 500 or 503.
    Errors,
    /// The apiserver can't be reached for minutes.
    CutOff,
    /// etcd is put back to a snapshot, so that resourceVersions go back.
    EtcdRestore,
    /// Nothing: what the workload itself does to others is checked.
    None,
    /// At the k-th write pods with copied labels of the jobs' attempts appear, in another namespace
    /// and without an owner in the jobs' own.
    ForeignPods,
    /// At the k-th write the node with most attempts is cordoned, for 5 to 30 s.
    Cordon,
    /// At the k-th write the node with most attempts stops answering. With an odd k it comes back
    /// after 5 to 30 s, with an even one when every job's fate is known; then its pods report how
    /// they ended.
    NodeLost,
    /// From the k-th write on the clocks of two of three nodes are a minute ahead and behind, and
    /// what is deleted ends with 0.
    ClockSkew,
    /// At the k-th write a job is submitted whose pods are all refused, with 403, 422 or 500, for
    /// 5 to 30 s or for good.
    DeniedCreates,
    /// From the k-th write on a webhook of the workload's namespace hangs, answers slowly or denies,
    /// for creates, deletes or patches of pods. Another namespace must not notice.
    SlowWebhook,
    /// One percent of all answers are 429, 500 or 503, for the whole run.
    Overloaded,
    /// One percent of all answers are 409, 429, 500 or 503 or never come, and every watch breaks off after 5 to 30 s,
    /// for the whole run.
    Turmoil,
}

/// The effect of the webhook of [`Fault::SlowWebhook`] on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// No answer for as long as the apiserver waits for one; then the call fails.
    Hangs,
    /// The call is carried out after this long.
    Slow(Duration),
    /// The call fails at once, with this status code.
    Denies(u16),
}

impl Fault {
    /// The unit of its points: there is one run for each.
    pub fn counts(self) -> Counts {
        match self {
            Self::Crash
            | Self::LostAnswer
            | Self::ForeignPods
            | Self::Cordon
            | Self::NodeLost
            | Self::ClockSkew
            | Self::DeniedCreates
            | Self::SlowWebhook => Counts::Writes,
            Self::StalePods => Counts::Notifications {
                pods: true,
                jobs: false,
            },
            Self::StaleJobs => Counts::Notifications {
                pods: false,
                jobs: true,
            },
            Self::StaleBoth | Self::Gone => Counts::Notifications {
                pods: true,
                jobs: true,
            },
            Self::SilentWatch
            | Self::Conflicts
            | Self::Errors
            | Self::CutOff
            | Self::None
            | Self::Overloaded
            | Self::Turmoil => Counts::Once,
            Self::EtcdRestore => Counts::Alone,
        }
    }

    /// Whether it may last beyond a deadline, so that how the job ends is open.
    pub fn outlasts_deadlines(self) -> bool {
        matches!(self, Self::CutOff | Self::SilentWatch | Self::EtcdRestore)
    }

    /// Whether it needs nodes that no other run uses.
    pub fn needs_nodes(self) -> bool {
        matches!(self, Self::Cordon | Self::NodeLost | Self::ClockSkew)
    }

    /// Whether it leaves the operator and its line to the apiserver alone, so that no launch may
    /// wait because of it.
    pub fn spares_operator(self) -> bool {
        let is_elsewhere = matches!(
            self,
            Self::None | Self::ForeignPods | Self::DeniedCreates | Self::SlowWebhook
        );
        is_elsewhere || self.needs_nodes()
    }

    /// Whether another namespace has a job that must not notice it.
    pub fn has_neighbor(self) -> bool {
        self == Self::SlowWebhook
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        option_name(&self)
    }
}

/// The unit of a fault's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Writes of the operator.
    Writes,
    /// Notifications of its watches of these kinds.
    Notifications {
        /// Of pods.
        pods: bool,
        /// Of DeadlineJobs.
        jobs: bool,
    },
    /// One run, in the middle of the workload.
    Once,
    /// A few writes, spread over the workload, each run alone in the cluster.
    Alone,
}

impl Counts {
    /// How many units a run had.
    pub fn of(self, seen: &Seen) -> u64 {
        match self {
            Self::Notifications { pods, jobs } => {
                u64::from(pods) * seen.pods + u64::from(jobs) * seen.jobs
            }
            Self::Writes | Self::Once | Self::Alone => seen.writes,
        }
    }
}

/// Where in a run the fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The fault.
    pub fault: Fault,
    /// At which write or notification, from 1.
    pub at: u64,
    /// How long what is held, cut or refused is so.
    pub lasts: Duration,
}

impl Point {
    /// Whether a lost node stays lost until every job's fate is known.
    pub fn stays_lost(self) -> bool {
        self.at.is_multiple_of(2)
    }

    /// Whether creates are refused for as long as the run lasts.
    pub fn denies_for_good(self) -> bool {
        self.at.is_multiple_of(2)
    }

    /// The calls about pods that the webhook receives, and its effect on them.
    pub fn webhook(self) -> (Method, Webhook) {
        let slow = Webhook::Slow(Duration::from_millis(10_000 + draw(3, self.at) % 20_001));
        let denies = Webhook::Denies(if (self.at / 6).is_multiple_of(2) {
            403
        } else {
            500
        });
        match self.at % 6 {
            1 => (Method::POST, Webhook::Hangs),
            2 => (Method::DELETE, denies),
            3 => (Method::PATCH, denies),
            4 => (Method::POST, slow),
            5 => (Method::DELETE, slow),
            _ => (Method::PATCH, slow),
        }
    }

    /// How a create is refused: status code, reason, message.
    pub fn denial(self) -> (u16, &'static str, &'static str) {
        match self.at % 3 {
            0 => (
                403,
                "Forbidden",
                "pods are forbidden: the policy of this namespace denies them",
            ),
            1 => (
                422,
                "Invalid",
                "Pod is invalid: spec: not what it should be",
            ),
            _ => (
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook: no answer",
            ),
        }
    }
}

/// A number that follows from the seed and what it is drawn for, and from nothing else.
pub fn draw(seed: u64, what: u64) -> u64 {
    // splitmix64: well mixed for neighbouring inputs.
    let mut z = seed
        .wrapping_add(what.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How long a watch is held: 5 to 30 s.
pub fn hold(seed: u64, at: u64) -> Duration {
    Duration::from_millis(5_000 + draw(seed, at) % 25_001)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn holds_follow_from_the_seed_and_stay_in_range() {
        let holds: Vec<_> = (0..500).map(|at| hold(7, at)).collect();
        assert_eq!(holds, (0..500).map(|at| hold(7, at)).collect::<Vec<_>>());
        let range = Duration::from_secs(5)..=Duration::from_secs(30);
        assert!(holds.iter().all(|hold| range.contains(hold)));
        assert_ne!(hold(7, 1), hold(8, 1));
    }

    #[test]
    fn neighboring_points_deny_each_way_for_a_time_and_for_good() {
        let points = (1..=6).map(|at| Point {
            fault: Fault::DeniedCreates,
            at,
            lasts: Duration::ZERO,
        });
        let kinds: BTreeSet<_> = points
            .map(|point| (point.denial().0, point.denies_for_good()))
            .collect();
        assert_eq!(kinds.len(), 6, "{kinds:?}");
    }

    #[test]
    fn neighboring_points_hold_up_and_deny_each_kind_of_call() {
        let kinds: BTreeSet<String> = (1..=12)
            .map(|at| {
                let point = Point {
                    fault: Fault::SlowWebhook,
                    at,
                    lasts: Duration::ZERO,
                };
                let (method, does) = point.webhook();
                if let Webhook::Slow(time) = does {
                    assert!((10..=30).contains(&time.as_secs()), "{time:?}");
                    return format!("{method} slow");
                }
                format!("{method} {does:?}")
            })
            .collect();
        let expected = [
            "DELETE Denies(403)",
            "DELETE Denies(500)",
            "DELETE slow",
            "PATCH Denies(403)",
            "PATCH Denies(500)",
            "PATCH slow",
            "POST Hangs",
            "POST slow",
        ];
        assert_eq!(kinds, expected.map(str::to_owned).into());
    }

    #[test]
    fn a_wrong_name_is_no_fault() {
        assert_eq!(Fault::from_str("stale-both", false), Ok(Fault::StaleBoth));
        assert!(Fault::from_str("crush", false).is_err());
    }
}
