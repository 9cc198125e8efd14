//! The best of many offers for a server, without looking at all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::cluster::CpuMem;
use shed_core::estimate::compare::margin;
use shed_papers::formulas::first_largest;

/// Minimum number of demands in a tile, except for the last.
const TILE_MIN: usize = 8;

/// The demands that some job offers now or may offer later, and the jobs that offer each.
///
/// The demands lie in *tiles* of neighbors, about √n tiles of √n demands. The corners of a tile
/// bound the fits in it. A search therefore checks all tiles but opens only few of them. It opens
/// all tiles only if unlike demands tie.
pub(crate) struct BestFit {
    demands: Vec<CpuMem>,
    /// The place of each in `demands`, by its bits.
    places: BTreeMap<(u64, u64), usize>,
    /// Jobs that offer the demand at a place.
    by: Vec<BTreeSet<usize>>,
    /// The demand at a place if some job offers it, else NaN.
    offered: Vec<CpuMem>,
    tile_size: usize,
    tiles: Vec<Tile>,
    least: CpuMem,
    /// The present search's bound for each tile.
    bounds: Vec<f64>,
}

/// The least and the largest amounts that are offered in a tile.
#[derive(Clone, Copy)]
struct Tile {
    low: CpuMem,
    high: CpuMem,
}

/// It fits nowhere.
const NOBODY: CpuMem = CpuMem {
    cpu: f64::NAN,
    mem: f64::NAN,
};

/// The bound of a tile in which nothing fits. It does not compare with others.
const NOTHING_FITS: f64 = f64::NAN;

impl BestFit {
    /// The index of these demands, without any offer yet.
    pub(crate) fn new(mut demands: Vec<CpuMem>) -> Self {
        demands.sort_unstable_by(|a, b| a.cpu.total_cmp(&b.cpu).then(a.mem.total_cmp(&b.mem)));
        demands.dedup_by_key(|demand| bits(demand));
        let tile_size = demands.len().isqrt().max(TILE_MIN);
        let tiles = demands.len().div_ceil(tile_size).max(1);
        // Columns of like cpu, each cut by memory, so that tiles are about as wide as high.
        let column = tiles.div_ceil(tiles.isqrt()) * tile_size;
        for column in demands.chunks_mut(column) {
            column.sort_unstable_by(|a, b| a.mem.total_cmp(&b.mem));
        }
        let nobody = Tile {
            low: NOBODY,
            high: NOBODY,
        };
        Self {
            places: demands.iter().map(bits).zip(0..).collect(),
            by: vec![BTreeSet::new(); demands.len()],
            offered: vec![NOBODY; demands.len()],
            tile_size,
            tiles: vec![nobody; tiles],
            least: NOBODY,
            bounds: Vec::with_capacity(tiles),
            demands,
        }
    }

    /// No offer takes less of either resource. It fits nowhere if there is no offer.
    pub(crate) fn least(&self) -> CpuMem {
        self.least
    }

    /// `by` offers one of the demands, until it withdraws that.
    pub(crate) fn offer(&mut self, demand: &CpuMem, by: usize) {
        if let Some(&place) = self.places.get(&bits(demand)) {
            self.by[place].insert(by);
            self.set(place, self.demands[place]);
        }
    }

    /// Removes the offer of this demand by `by`.
    pub(crate) fn withdraw(&mut self, demand: &CpuMem, by: usize) {
        if let Some(&place) = self.places.get(&bits(demand)) {
            self.by[place].remove(&by);
            if self.by[place].is_empty() {
                self.set(place, NOBODY);
            }
        }
    }

    fn set(&mut self, place: usize, offered: CpuMem) {
        if bits(&self.offered[place]) == bits(&offered) {
            return;
        }
        self.offered[place] = offered;
        let tile = place / self.tile_size;
        let offered = &self.offered[self.places_of(tile)];
        self.tiles[tile] = Tile {
            low: least_of(offered.iter().copied()),
            high: offered
                .iter()
                .fold(NOBODY, |high, demand| high.most(demand)),
        };
        self.least = least_of(self.tiles.iter().map(|tile| tile.low));
    }

    /// The job with the best offer of those that fit. Of equally good offers the
    /// first wins, as in [`first_largest`]. The fit of a demand is `cpu` of its cores plus `mem` of
    /// its memory. Both functions must be monotonic.
    pub(crate) fn best(
        &mut self,
        limit: &CpuMem,
        cpu: impl Fn(f64) -> f64,
        mem: impl Fn(f64) -> f64,
    ) -> Option<usize> {
        let (mut promising, mut highest) = (None, f64::NEG_INFINITY);
        self.bounds.clear();
        for (at, Tile { low, high }) in self.tiles.iter().enumerate() {
            let bound = if is_within(low, limit) {
                let cpu = cpu(low.cpu).max(cpu(high.cpu));
                let bound = cpu + mem(low.mem).max(mem(high.mem));
                if bound.is_nan() { f64::INFINITY } else { bound }
            } else {
                NOTHING_FITS
            };
            if bound >= highest {
                (promising, highest) = (Some(at), bound);
            }
            self.bounds.push(bound);
        }
        let fit = |demand: &CpuMem| cpu(demand.cpu) + mem(demand.mem);
        let mut leader = Leader::default();
        // The most promising one first: after it, few others can hold anything better.
        self.search(promising?, limit, fit, &mut leader);
        for (at, &bound) in self.bounds.iter().enumerate() {
            if promising != Some(at) && bound >= leader.floor {
                self.search(at, limit, fit, &mut leader);
            }
        }
        if leader.is_tied {
            return self.first_best(limit, fit);
        }
        self.by.get(leader.place?)?.first().copied()
    }

    /// Weighs the offers of one tile.
    fn search(
        &self,
        tile: usize,
        limit: &CpuMem,
        fit: impl Fn(&CpuMem) -> f64,
        leader: &mut Leader,
    ) {
        let places = self.places_of(tile);
        for (place, demand) in places.clone().zip(&self.offered[places]) {
            if is_within(demand, limit) {
                leader.weigh(place, fit(demand));
            }
        }
    }

    /// The definition: a scan in the order of the jobs. A later job with an equal offer never wins.
    fn first_best(&self, limit: &CpuMem, fit: impl Fn(&CpuMem) -> f64) -> Option<usize> {
        let offered = self.offered.iter().zip(&self.by);
        let fitting = offered.filter(|(demand, _)| is_within(demand, limit));
        let mut offers: Vec<(usize, f64)> = fitting
            .filter_map(|(demand, by)| Some((*by.first()?, fit(demand))))
            .collect();
        offers.sort_unstable_by_key(|&(by, _)| by);
        first_largest(offers.into_iter().map(|(by, fit)| (fit, by)))
    }

    fn places_of(&self, tile: usize) -> Range<usize> {
        let begin = tile * self.tile_size;
        begin..(begin + self.tile_size).min(self.demands.len())
    }
}

/// The best offer so far.
struct Leader {
    place: Option<usize>,
    fit: f64,
    /// Fits below this do not tie with it.
    floor: f64,
    /// Whether another offer may be a tie with it.
    is_tied: bool,
}

impl Default for Leader {
    fn default() -> Self {
        Self {
            place: None,
            fit: f64::NEG_INFINITY,
            floor: f64::NEG_INFINITY,
            is_tied: false,
        }
    }
}

impl Leader {
    fn weigh(&mut self, place: usize, fit: f64) {
        if fit > self.fit {
            let reach = if fit.is_finite() {
                2.0 * margin(fit, fit)
            } else {
                0.0
            };
            self.floor = fit - reach;
            self.is_tied = self.fit >= self.floor;
            (self.place, self.fit) = (Some(place), fit);
        } else {
            // Also for a NaN, which the scan handles.
            let is_below = fit < self.floor;
            self.is_tied |= !is_below;
        }
    }
}

/// The least of each amount. Demands without an offer do not count.
pub(crate) fn least_of(demands: impl Iterator<Item = CpuMem>) -> CpuMem {
    demands.fold(NOBODY, |least, demand| least.least(&demand))
}

fn is_within(demand: &CpuMem, limit: &CpuMem) -> bool {
    demand.cpu <= limit.cpu && demand.mem <= limit.mem
}

fn bits(demand: &CpuMem) -> (u64, u64) {
    (demand.cpu.to_bits(), demand.mem.to_bits())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Small whole amounts, so that ties happen; some a hair apart.
    fn amount() -> impl Strategy<Value = CpuMem> {
        let one = || {
            (0u32..9, 0u32..4)
                .prop_map(|(amount, hair)| f64::from(amount) * (1.0 + 0.4e-9 * f64::from(hair)))
        };
        (one(), one()).prop_map(|(cpu, mem)| CpuMem { cpu, mem })
    }

    /// The definition, word for word.
    fn scanned(held: &[Option<CpuMem>], limit: &CpuMem, free: &CpuMem) -> Option<usize> {
        let offers = held.iter().enumerate();
        let fitting = offers.filter_map(|(by, demand)| {
            let demand = demand.as_ref()?;
            is_within(demand, limit).then(|| (free.dot(demand), by))
        });
        first_largest(fitting)
    }

    proptest! {
        #[test]
        fn it_finds_what_a_scan_finds(
            demands in prop::collection::vec(amount(), 1..120),
            changes in prop::collection::vec((0usize..40, 0usize..200, amount(), amount()), 0..80),
        ) {
            let mut index = BestFit::new(demands.clone());
            let mut held: Vec<Option<CpuMem>> = vec![None; 40];
            for (by, which, limit, free) in changes {
                if let Some(old) = held[by].take() {
                    index.withdraw(&old, by);
                }
                // More often than not, some demand.
                if let Some(&demand) = demands.get(which % (demands.len() + 20)) {
                    index.offer(&demand, by);
                    held[by] = Some(demand);
                }
                let found = index.best(&limit, |cpu| free.cpu * cpu, |mem| free.mem * mem);
                prop_assert_eq!(found, scanned(&held, &limit, &free));
                let least = held.iter().flatten().map(|demand| demand.cpu).fold(f64::NAN, f64::min);
                prop_assert_eq!(index.least().cpu.to_bits(), least.to_bits());
            }
        }
    }

    #[test]
    fn odd_numbers_are_offers_as_a_scan_takes_them() {
        let of = |cpu, mem| CpuMem { cpu, mem };
        let demands = [
            of(f64::INFINITY, 1.0),
            of(f64::NAN, 1.0),
            of(0.0, 2.0),
            of(-1.0, 3.0),
        ];
        let mut index = BestFit::new(demands.to_vec());
        for (by, demand) in demands.iter().enumerate() {
            index.offer(demand, by);
        }
        let mut best = |limit: &CpuMem, free: &CpuMem| {
            index.best(limit, |cpu| free.cpu * cpu, |mem| free.mem * mem)
        };
        let all = of(f64::INFINITY, f64::INFINITY);
        assert_eq!(best(&all, &of(1.0, 1.0)), Some(0));
        // The infinite amount times nothing is no number.
        assert_eq!(best(&all, &of(0.0, 1.0)), Some(3));
        assert_eq!(best(&of(9.0, 2.5), &of(1.0, 1.0)), Some(2));
        assert_eq!(best(&of(-0.5, 9.0), &of(-1.0, -1.0)), Some(3));
        assert_eq!(best(&of(f64::NAN, 9.0), &of(1.0, 1.0)), None);
    }
}
