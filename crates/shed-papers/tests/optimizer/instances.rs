//! Random inputs of any size, the same in every run.

use shed_papers::optimize::greedy::{GreedyInput, GreedyJob, GreedyTask};

/// SplitMix64: a small generator whose numbers never change.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// In `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A straggler that misses with a probability from 2 % to 98 %, and whose clones do no worse.
pub fn straggler(random: &mut Random) -> GreedyTask {
    let miss = random.between(0.02, 0.98);
    let ln_miss_present = libm::log(miss);
    GreedyTask {
        ln_miss_present,
        ln_miss_per_clone: ln_miss_present * random.between(1.0, 2.0),
        clones_alive: 0,
        may_receive_clones: true,
    }
}

/// Jobs of stragglers alone, MAX being 5.
pub fn stragglers(random: &mut Random, jobs: usize, tasks: usize, kappa: i64) -> GreedyInput {
    let job = |_| GreedyJob {
        max_clones: 5,
        ln_pocd_rest: -random.between(0.0, 0.2),
        ln_pocd_target: f64::INFINITY,
        tasks: (0..tasks).map(|_| straggler(random)).collect(),
    };
    GreedyInput {
        kappa,
        jobs: (0..jobs).map(job).collect(),
    }
}
