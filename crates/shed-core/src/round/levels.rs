//! DollyMP Algorithm 1: the priority levels of jobs, by which the order `dollymp` serves them.

use std::collections::BTreeMap;

use crate::estimate::compare::{at_most, sort_with_ties};

/// A job in the form that Algorithm 1 reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelItem {
    /// The job's id.
    pub id: u64,
    /// v, its volume.
    pub volume: f64,
    /// e, its longest chain.
    pub time: f64,
}

/// The result of Algorithm 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Levels {
    /// G, the number of levels; 0 without jobs.
    pub top: u32,
    /// B_l for l = 1…G: the ids of the jobs packed into each level, by volume.
    pub packed: Vec<Vec<u64>>,
    /// p, the first level into which each job was packed; 1 is served first.
    pub priority: BTreeMap<u64, u32>,
}

/// No finite measure needs more levels: 2^1024 is beyond the largest double.
pub const LEVELS_MAX: u32 = 1024;

/// 2^level, the length of a level in slots.
pub fn level_length(level: u32) -> f64 {
    libm::scalbn(1.0, i32::try_from(level).unwrap_or(i32::MAX))
}

/// G, the least whole number ≥ 1 with 2^G ≥ max(Σv, max e); 0 without jobs.
///
/// The printed `log(Σv/(1 − max d))` has no base, is no whole number, is undefined at a dominant
/// share of 1 and too small for one long small job, which then never gets a level. Any larger
/// number of levels gives the same priorities.
pub fn top_level(items: &[LevelItem]) -> u32 {
    if items.is_empty() {
        return 0;
    }
    let volume: f64 = items.iter().map(|item| item.volume).sum();
    let time = items.iter().map(|item| item.time).fold(0.0, f64::max);
    let needed = volume.max(time);
    (1..LEVELS_MAX)
        .find(|&level| at_most(needed, level_length(level)))
        .unwrap_or(LEVELS_MAX)
}

/// Algorithm 1: on each level l it packs the jobs that last at most 2^l, smallest volume first, while their volumes
/// add up to at most 2^l. Jobs that already have a level are packed again. All jobs have the same value, so smallest
/// first solves the knapsack exactly.
///
/// One sort, then O(N·G).
pub fn levels(items: &[LevelItem]) -> Levels {
    let mut by_volume = items.to_vec();
    sort_with_ties(&mut by_volume, |item| item.volume, |item| item.id);
    let mut result = Levels {
        top: top_level(items),
        ..Levels::default()
    };
    for level in 1..=result.top {
        let packed = pack(&by_volume, level_length(level));
        for &id in &packed {
            result.priority.entry(id).or_insert(level);
        }
        result.packed.push(packed);
    }
    result
}

fn pack(by_volume: &[LevelItem], length: f64) -> Vec<u64> {
    let mut sum = 0.0;
    by_volume
        .iter()
        .filter(|item| at_most(item.time, length))
        .take_while(|item| {
            sum += item.volume;
            at_most(sum, length)
        })
        .map(|item| item.id)
        .collect()
}
