//! The example of DollyMP §4.1: why few clones and small jobs first beat many clones.

use crate::speedup::speedup;

/// Total flow times of three schedules of the same jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowExample {
    /// All jobs at once, the last of them with one clone: N − 1 + 1/h(2).
    pub all_at_once: f64,
    /// One job after another, each with as many copies as fit: Σ j/h(2^j).
    pub maximal_clones: f64,
    /// Small jobs first, one clone each: (N + 1)/h(2).
    pub one_clone_each: f64,
}

/// N jobs of one task with demands 2^−1, …, 2^−N and mean time 1, on one server of capacity 1.
/// `None` for α ≤ 1.
///
/// One clone each beats no clones, which beat maximal clones, for α ≥ 2 and N > 2α − 1.
pub fn flow_example(alpha: f64, jobs: u32) -> Option<FlowExample> {
    let two = speedup(alpha, 2.0)?;
    let n = f64::from(jobs);
    let turn = |j: u32| Some(f64::from(j) / speedup(alpha, libm::exp2(f64::from(j)))?);
    Some(FlowExample {
        all_at_once: n - 1.0 + 1.0 / two,
        maximal_clones: (1..=jobs).filter_map(turn).sum(),
        one_clone_each: (n + 1.0) / two,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_clone_each_wins_once_there_are_enough_jobs() {
        for alpha in [2.0, 2.5, 4.0] {
            let least = (2.0_f64 * alpha).floor() as u32;
            for jobs in least + 1..least + 20 {
                let flow = flow_example(alpha, jobs).unwrap();
                assert!(flow.one_clone_each < flow.all_at_once);
                assert!(flow.all_at_once < flow.maximal_clones);
            }
        }
        assert_eq!(flow_example(1.0, 5), None);
    }
}
