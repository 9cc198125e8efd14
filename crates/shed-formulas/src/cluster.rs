//! Servers and demands of two resources, as DollyMP and its baselines see them.

use shed_core::estimate::compare::{at_most, largest_at_most};

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
    pub fn fits(&self, room: &Self) -> bool {
        at_most(self.cpu, room.cpu) && at_most(self.mem, room.mem)
    }
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
