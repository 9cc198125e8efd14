//! Servers and demands of two resources, as DollyMP and its baselines see them.

use shed_core::estimate::compare::{at_most, margin};

/// Amounts of cpu (cores) and memory (GB); fractions are fine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuMem {
    /// Cores.
    pub cpu: f64,
    /// Memory in GB.
    pub mem: f64,
}

impl CpuMem {
    /// The sum.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            mem: self.mem + other.mem,
        }
    }

    /// The difference; it may be negative.
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&other.times(-1.0))
    }

    /// Both amounts times `factor`.
    pub fn times(&self, factor: f64) -> Self {
        Self {
            cpu: self.cpu * factor,
            mem: self.mem * factor,
        }
    }

    /// Both amounts as shares of `whole`.
    pub fn share_of(&self, whole: &Self) -> Self {
        Self {
            cpu: share(self.cpu, whole.cpu),
            mem: share(self.mem, whole.mem),
        }
    }

    /// The larger of both.
    pub fn largest(&self) -> f64 {
        self.cpu.max(self.mem)
    }

    /// The sum of both, which makes sense for shares.
    pub fn sum(&self) -> f64 {
        self.cpu + self.mem
    }

    /// The inner product.
    pub fn dot(&self, other: &Self) -> f64 {
        self.cpu * other.cpu + self.mem * other.mem
    }

    /// The larger of each amount; NaN does not count.
    pub(crate) fn most(&self, other: &Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            mem: self.mem.max(other.mem),
        }
    }

    /// The lesser of each amount; NaN does not count.
    pub(crate) fn least(&self, other: &Self) -> Self {
        Self {
            cpu: self.cpu.min(other.cpu),
            mem: self.mem.min(other.mem),
        }
    }

    /// The largest amounts that [`CpuMem::fits`] here: to compare many with them is less work.
    pub(crate) fn largest_that_fits(&self) -> Self {
        Self {
            cpu: largest_at_most(self.cpu),
            mem: largest_at_most(self.mem),
        }
    }

    /// Whether neither amount exceeds the other's; both compared with tolerance.
    pub fn fits(&self, free: &Self) -> bool {
        at_most(self.cpu, free.cpu) && at_most(self.mem, free.mem)
    }
}

/// The largest number that is [`at_most`] `bound`: comparing many numbers with it is cheaper.
fn largest_at_most(bound: f64) -> f64 {
    if !bound.is_finite() {
        return bound;
    }
    let mut largest = bound + margin(bound, bound);
    while !at_most(largest, bound) {
        largest = largest.next_down();
    }
    while largest < f64::MAX && at_most(largest.next_up(), bound) {
        largest = largest.next_up();
    }
    largest
}

/// A share of zero capacity is 0 for a demand of zero, and otherwise infinite.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / whole }
}

/// A server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Server {
    /// Identifies the server; ties go to the least.
    pub id: u64,
    /// C_i, M_i: its capacity.
    pub capacity: CpuMem,
    /// R_i: its free capacity.
    pub free: CpuMem,
}

/// ΣC_i, ΣM_i: total capacity of all servers.
pub fn total_capacity(servers: &[Server]) -> CpuMem {
    servers
        .iter()
        .fold(CpuMem::default(), |sum, server| sum.plus(&server.capacity))
}

/// An attempt that a round starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// The job's id.
    pub job: u64,
    /// Position of the phase in the job.
    pub phase: usize,
    /// Position of the task in the phase.
    pub task: usize,
    /// The server's id.
    pub server: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_at_most_a_bound_is_and_the_next_double_is_not() {
        for bound in [-7.0, -1e-7, 0.0, 5e-324, 1e-6, 0.3, 16.0, 64.0, 1e17, 1e300] {
            let largest = largest_at_most(bound);
            assert!(largest >= bound && at_most(largest, bound), "{bound}");
            assert!(!at_most(largest.next_up(), bound), "{bound}");
        }
        assert_eq!(largest_at_most(f64::INFINITY), f64::INFINITY);
        assert_eq!(largest_at_most(f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(largest_at_most(f64::MAX), f64::MAX);
        assert!(largest_at_most(f64::NAN).is_nan());
    }
}
