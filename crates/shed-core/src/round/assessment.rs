//! How a policy overrides the estimate of a job's attempts.

/// How the attempts of a job are judged, for a policy with a better estimate than the distribution of the job's
/// attempt durations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Assessment {
    /// Seconds from a launch to the start of its work; absent: t_avg.
    pub launch_time: Option<f64>,
}
