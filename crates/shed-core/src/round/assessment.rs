//! How a policy overrides the estimate of a job's attempts.

/// How the attempts of a job are judged, for a policy with a better estimate than the distribution of the job's
/// attempt durations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Assessment {
    /// Seconds from a launch to the start of its work; absent: t_avg.
    pub launch_time: Option<f64>,
    /// The standard deviation of the predicted remaining time of an attempt that reports, as a share of that time. If
    /// absent, eq. 14 gives the probability of a miss.
    pub spread: Option<f64>,
}
