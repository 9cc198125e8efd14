//! The first of many servers with enough capacity, without checking all of them.

use crate::cluster::CpuMem;

/// Free capacity per server, and over each power-of-two range of servers the largest free amount of
/// either resource.
///
/// A search skips a range when the demand exceeds one of its largest amounts. The two largest
/// amounts need not be on the same server, so a search may turn back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FreeIndex {
    /// A complete binary tree: the root at 1, the children of n at 2n and 2n + 1, the servers in
    /// the last `leaves` places.
    largest: Vec<CpuMem>,
    leaves: usize,
}

/// Nothing fits it.
const NO_SERVER: CpuMem = CpuMem {
    cpu: f64::NEG_INFINITY,
    mem: f64::NEG_INFINITY,
};

impl FreeIndex {
    /// The index over these free amounts.
    pub(crate) fn new(free: impl ExactSizeIterator<Item = CpuMem>) -> Self {
        let leaves = free.len().next_power_of_two();
        let mut largest = vec![NO_SERVER; leaves];
        largest.extend(free);
        largest.resize(2 * leaves, NO_SERVER);
        let mut index = Self { largest, leaves };
        for node in (1..leaves).rev() {
            index.refresh(node);
        }
        index
    }

    /// Recomputes a node; returns whether that changed it.
    fn refresh(&mut self, node: usize) -> bool {
        let (left, right) = (self.largest[2 * node], self.largest[2 * node + 1]);
        let largest = left.most(&right);
        std::mem::replace(&mut self.largest[node], largest) != largest
    }

    /// Takes note that `free` is free on the server at `server`. O(log servers) at most.
    pub(crate) fn set(&mut self, server: usize, free: CpuMem) {
        let mut node = self.leaves + server;
        self.largest[node] = free;
        while node > 1 {
            node /= 2;
            if !self.refresh(node) {
                break;
            }
        }
    }

    /// The position of the first server with enough capacity for `demand`.
    pub(crate) fn first_fit(&self, demand: &CpuMem) -> Option<usize> {
        self.first_below(1, demand)
    }

    fn first_below(&self, node: usize, demand: &CpuMem) -> Option<usize> {
        if !demand.fits(&self.largest[node]) {
            return None;
        }
        if node >= self.leaves {
            return Some(node - self.leaves);
        }
        let left = self.first_below(2 * node, demand);
        left.or_else(|| self.first_below(2 * node + 1, demand))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount() -> impl Strategy<Value = CpuMem> {
        (0u32..9, 0u32..9).prop_map(|(cpu, mem)| CpuMem {
            cpu: f64::from(cpu),
            mem: f64::from(mem),
        })
    }

    proptest! {
        #[test]
        fn it_finds_what_a_scan_finds(
            mut free in prop::collection::vec(amount(), 0..20),
            changes in prop::collection::vec((0usize..20, amount()), 0..20),
            demand in amount(),
        ) {
            let mut index = FreeIndex::new(free.iter().copied());
            for (server, amount) in changes {
                if let Some(held) = free.get_mut(server) {
                    *held = amount;
                    index.set(server, amount);
                }
            }
            let scanned = free.iter().position(|free| demand.fits(free));
            prop_assert_eq!(index.first_fit(&demand), scanned);
        }
    }
}
