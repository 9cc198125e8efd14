//! Earliest deadline first (Liu and Layland, Journal of the ACM 20(1), 1973) or least slack first, with preemption from
//! checkpoints: no clones and no admission. Compared with `hadoop-ns` in the same order it shows what preemption alone
//! gives, and compared with shed-prime, which may preempt too, what the rest of shed-prime gives.
//!
//! A job waits in its order of service and preempts attempts of jobs that come later in it, under the rules of
//! `edf-admission`. Jobs that cannot meet their deadline any more preempt no other, and are served last. The policy
//! ranks jobs itself, so it needs `order=lst`.

use shed_core::policy::{Arranged, Comparison, Desk, Judgement, PolicyRule, Recall, Summary};
use shed_core::round::{JobView, Number};
use shed_core::settings::{Setting, word};

use crate::preempting::{ServiceRank, preempt};

/// The order of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceOrder {
    /// Earliest deadline first.
    #[default]
    Deadline,
    /// Least slack first: time to the deadline less the work left on as many slots as the job could get.
    Slack,
}

word!(ServiceOrder, [ServiceOrder::Deadline => "edf", ServiceOrder::Slack => "lst"]);

/// The parameters of preemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preempting {
    /// The order of service.
    pub by: ServiceOrder,
}

/// The time that a job needs, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Need {
    /// Until its deadline; absent without one.
    slack: Option<f64>,
    /// Of all its tasks together.
    work: f64,
    /// Of the task that needs longest.
    longest: f64,
    /// Tasks that may run at a time.
    parallelism: u32,
    /// From a launch to the start of its work.
    launch: f64,
}

impl Need {
    fn of(job: &JobView<'_>) -> Self {
        let waiting = f64::from(job.unfinished()) - job.estimate.tasks.len() as f64;
        let mean = job.estimate.mean_run.unwrap_or(0.0);
        let tasks = job.estimate.tasks.iter();
        let running = tasks.map(|task| task.remaining().unwrap_or(mean).max(0.0));
        let (sum, most) = running.fold((0.0, 0.0_f64), |(sum, most), it| (sum + it, most.max(it)));
        Self {
            slack: job.estimate.slack,
            work: sum + waiting * mean,
            longest: if waiting > 0.0 { most.max(mean) } else { most },
            parallelism: job.job.rules.parallelism,
            launch: job.launch_time(),
        }
    }

    /// Seconds that the job can wait, on at most this number of slots.
    fn spare(&self, slots: u32) -> f64 {
        let width = f64::from(self.parallelism.min(slots).max(1));
        let slack = self.slack.unwrap_or(f64::INFINITY);
        slack - self.longest.max(self.work / width)
    }
}

/// Launches that a preemption costs its victim: the one that was made, and the next one.
const LAUNCHES_LOST: f64 = 2.0;

impl Preempting {
    fn rank(self, job: &Summary<'_, Need>) -> ServiceRank {
        let slack = job.belief.slack.unwrap_or(f64::INFINITY);
        let seconds = match self.by {
            ServiceOrder::Deadline => slack,
            ServiceOrder::Slack => job.belief.spare(job.slots),
        };
        ServiceRank {
            is_last: seconds <= 0.0,
            seconds: Number(seconds),
        }
    }
}

impl PolicyRule for Preempting {
    type Belief = Need;
    type State = ();
    /// The job's rank; absent before it is compared.
    type Place = Option<ServiceRank>;

    fn name(&self) -> &'static str {
        "preemption"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![Setting::word("by", &mut self.by)]
    }

    fn max_clones(&self) -> u32 {
        0
    }

    fn preempts(&self) -> bool {
        true
    }

    fn judge(&self, job: &JobView<'_>, _: &Recall<'_, ()>) -> Judgement<Need> {
        Judgement {
            acts: job.may_speculate(),
            belief: Need::of(job),
            ..Judgement::none()
        }
    }

    fn arrange(
        &self,
        jobs: &[Summary<'_, Need>],
        _: &Comparison<'_>,
    ) -> Vec<Arranged<Option<ServiceRank>>> {
        let arranged = jobs.iter().map(|job| {
            let rank = self.rank(job);
            Arranged {
                rank: Some((rank.is_last, (rank.seconds.0 * 1000.0) as i64)),
                place: Some(rank),
            }
        });
        arranged.collect()
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        let last = ServiceRank {
            is_last: true,
            seconds: Number(f64::INFINITY),
        };
        let places = desk.places().iter();
        let ranks: Vec<ServiceRank> = places.map(|place| place.unwrap_or(last)).collect();
        let lost = |need: &Need| match self.by {
            ServiceOrder::Deadline => 0.0,
            ServiceOrder::Slack => LAUNCHES_LOST * need.launch,
        };
        let as_victims = ranks.iter().zip(desk.beliefs());
        let as_victims = as_victims.map(|(rank, need)| ServiceRank {
            seconds: Number(rank.seconds.0 - lost(need)),
            ..*rank
        });
        let as_victims: Vec<ServiceRank> = as_victims.collect();
        preempt(desk, &ranks, &as_victims);
    }
}
