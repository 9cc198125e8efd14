//! The result of a run, on the cluster or in the simulator: the same figures of both.

use serde::{Deserialize, Serialize};

/// An attempt. Times are seconds from the start of the replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptResult {
    /// Position of its job in the excerpt.
    pub job: usize,
    pub task: u32,
    pub number: u32,
    pub clone: bool,
    pub node: Option<String>,
    /// When it was launched; in reality when its pod was seen first.
    pub launched: f64,
    /// When it began to work, if it did.
    pub started: Option<f64>,
    /// When its work was done or stopped, if it began.
    pub ended: Option<f64>,
    /// When it was seen to be killed; not reported by the simulator, which is given how long a kill takes.
    pub killed: Option<f64>,
    /// When its slot was free again.
    pub freed: f64,
    /// The share of its task that was done when it began.
    pub begin: f64,
    pub won: bool,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Seconds from the start of the replay.
    pub arrived: f64,
    /// Seconds that it has from its arrival.
    pub within: f64,
    /// When its last task was done; absent if it was not completed.
    pub done: Option<f64>,
    /// Whether that was in time, as the operator says, or the simulator.
    pub met: bool,
}

impl JobResult {
    /// Seconds from its arrival to the end of its last task; absent if it was not completed.
    pub fn flowtime(&self) -> Option<f64> {
        Some(self.done? - self.arrived)
    }
}

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    pub jobs: Vec<JobResult>,
    pub attempts: Vec<AttemptResult>,
}

impl RunResult {
    /// Deadlines met.
    pub fn met(&self) -> usize {
        self.jobs.iter().filter(|job| job.met).count()
    }

    /// Clones launched.
    pub fn clones(&self) -> usize {
        self.attempts.iter().filter(|ran| ran.clone).count()
    }

    /// Seconds for which attempts held a slot, from their launch on.
    pub fn slot_seconds(&self) -> f64 {
        self.attempts
            .iter()
            .map(|ran| ran.freed - ran.launched)
            .sum()
    }

    /// Mean seconds from arrival to completion over completed jobs; 0 without any.
    pub fn flowtime(&self) -> f64 {
        mean(self.jobs.iter().filter_map(JobResult::flowtime)).unwrap_or(0.0)
    }

    /// The job's task that was done last; absent if the job was not completed.
    pub fn last_task(&self, job: usize) -> Option<u32> {
        let winners = self.attempts.iter().filter(|ran| ran.won && ran.job == job);
        let last = winners.max_by(|a, b| a.ended.unwrap_or(0.0).total_cmp(&b.ended.unwrap_or(0.0)));
        last.map(|ran| ran.task)
    }

    /// Where the time of a task went; absent if it was not done.
    pub fn story(&self, job: usize, task: u32) -> Option<Story> {
        let of_task = || {
            self.attempts
                .iter()
                .filter(|ran| (ran.job, ran.task) == (job, task))
        };
        let winner = of_task().find(|ran| ran.won)?;
        let first = of_task().min_by_key(|ran| ran.number)?;
        let (started, ended) = (winner.started?, winner.ended?);
        Some(Story {
            waited: first.launched - self.jobs[job].arrived,
            rescued_after: winner.launched - first.launched,
            starting: started - winner.launched,
            working: ended - started,
            first_node: first.node.clone(),
            by_clone: winner.number != first.number,
        })
    }
}

/// The time from a job's arrival to the end of one of its tasks, in seconds, as four parts that follow
/// each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// Until its first attempt was launched.
    pub waited: f64,
    /// From then until the attempt that won was launched; 0 if that was the first.
    pub rescued_after: f64,
    /// From then until that one worked.
    pub starting: f64,
    /// Its work.
    pub working: f64,
    /// Where the first attempt was.
    pub first_node: Option<String>,
    /// Whether another attempt than the first won.
    pub by_clone: bool,
}

impl Story {
    /// The four parts.
    pub fn parts(&self) -> [f64; 4] {
        [self.waited, self.rescued_after, self.starting, self.working]
    }
}

/// The mean of some numbers; none of none.
pub fn mean(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers
        .into_iter()
        .fold((0.0, 0_u32), |(sum, count), number| {
            (sum + number, count + 1)
        });
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An attempt that is launched, starts a second later and works until `ended`.
    pub(in super::super) fn ran(
        task: u32,
        number: u32,
        node: &str,
        launched: f64,
        ended: f64,
        won: bool,
    ) -> AttemptResult {
        AttemptResult {
            job: 0,
            task,
            number,
            clone: number > 0,
            node: Some(node.to_owned()),
            launched,
            started: Some(launched + 1.0),
            ended: Some(ended),
            killed: (!won).then_some(ended - 0.5),
            freed: ended + 1.0,
            begin: 0.0,
            won,
        }
    }

    /// A job of two tasks that arrives at 10; its second task is saved by a clone.
    pub(in super::super) fn rescued() -> RunResult {
        RunResult {
            jobs: vec![JobResult {
                arrived: 10.0,
                within: 30.0,
                done: Some(40.0),
                met: true,
            }],
            attempts: vec![
                ran(0, 0, "n1", 12.0, 22.0, true),
                ran(1, 0, "n2", 12.0, 40.5, false),
                ran(1, 1, "n1", 27.0, 40.0, true),
            ],
        }
    }

    #[test]
    fn the_parts_of_a_story_add_up_to_the_flowtime() {
        let came = rescued();
        let last = came.last_task(0).unwrap();
        let story = came.story(0, last).unwrap();
        assert_eq!((last, story.parts()), (1, [2.0, 15.0, 1.0, 12.0]));
        assert_eq!(story.parts().iter().sum::<f64>(), came.flowtime());
        assert_eq!(
            (story.first_node.as_deref(), story.by_clone),
            (Some("n2"), true)
        );
    }

    #[test]
    fn figures_are_those_of_the_attempts() {
        let came = rescued();
        assert_eq!((came.met(), came.clones()), (1, 1));
        assert_eq!(came.slot_seconds(), 11.0 + 29.5 + 14.0);
        assert_eq!(came.story(0, 7), None);
    }
}
