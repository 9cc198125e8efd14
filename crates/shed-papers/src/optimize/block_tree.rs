//! A tree of blocks: the layout that a tournament and a sum of many terms share.

/// Children of a node.
const WIDTH: usize = 8;

/// The children of one node, on one cache line, because the number of lines that a change touches determines its
/// cost.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Block([f64; WIDTH]);

/// How a node combines its children.
pub(super) trait Combine {
    /// The filler where no value is set; it changes no combination.
    const NOTHING: f64;

    fn combine(one: f64, other: f64) -> f64;
}

/// Values in the order of their indexes under a tree of combinations, every leaf at the same
/// depth. Slot `s` of all blocks in a row has the block `s + 1` as children, and so the block
/// `b` is below the slot `b − 1`; block 0 is the top. A change costs O(log n).
#[derive(Debug, Clone, Default)]
pub(super) struct BlockTree {
    blocks: Vec<Block>,
    /// The slot of the first value.
    first_leaf: usize,
}

impl BlockTree {
    /// A position for each of `places` values; positions that `values` does not fill hold nothing. O(n).
    pub(super) fn new<C: Combine>(values: impl IntoIterator<Item = f64>, places: usize) -> Self {
        let mut tree = Self::default();
        tree.refill::<C>(values, places);
        tree
    }

    /// As [`BlockTree::new`], in the memory of the previous content.
    pub(super) fn refill<C: Combine>(
        &mut self,
        values: impl IntoIterator<Item = f64>,
        places: usize,
    ) {
        // Above the leaves: full levels of 1, 8, 64, … blocks until one has enough slots.
        let (mut above, mut level) = (0, 1);
        while level * WIDTH < places {
            above += level;
            level *= WIDTH;
        }
        let leaves = places.div_ceil(WIDTH).max(1);
        self.first_leaf = above * WIDTH;
        self.blocks.clear();
        self.blocks
            .resize(above + leaves, Block([C::NOTHING; WIDTH]));
        let mut values = values.into_iter().take(places);
        for block in self.blocks.iter_mut().skip(above) {
            for (slot, value) in block.0.iter_mut().zip(&mut values) {
                *slot = value;
            }
        }
        for slot in (0..self.blocks.len() - 1).rev() {
            let combined = self.combined::<C>(slot + 1);
            if let Some(Block(slots)) = self.blocks.get_mut(slot / WIDTH) {
                slots[slot % WIDTH] = combined;
            }
        }
    }

    /// The combination of all values.
    pub(super) fn total<C: Combine>(&self) -> f64 {
        self.combined::<C>(0)
    }

    /// The value at a position, or the filler.
    pub(super) fn value<C: Combine>(&self, index: usize) -> f64 {
        self.slot(self.first_leaf + index).unwrap_or(C::NOTHING)
    }

    /// All positions with their content, up to the last block.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let leaves = self.blocks.iter().skip(self.first_leaf / WIDTH);
        leaves.flat_map(|block| block.0)
    }

    /// Changes a value. Returns the combination of all values if that changes a block at the top.
    pub(super) fn set<C: Combine>(&mut self, index: usize, value: f64) -> Option<f64> {
        let (mut slot, mut value) = (self.first_leaf + index, value);
        loop {
            let (block, within) = (slot / WIDTH, slot % WIDTH);
            let Block(slots) = self.blocks.get_mut(block)?;
            let mut changed = *slots;
            // Not by its index. The values just written one by one would otherwise have to leave the processor's
            // store buffer before they can be read together, again at every level.
            for (at, held) in changed.iter_mut().enumerate() {
                *held = if at == within { value } else { *held };
            }
            let held = slots.get_mut(within)?;
            if held.to_bits() == value.to_bits() {
                return None;
            }
            *held = value;
            value = combine::<C>(changed);
            let Some(above) = block.checked_sub(1) else {
                return Some(value);
            };
            slot = above;
        }
    }

    /// The first wanted position. A node must be wanted if anything below it is.
    pub(super) fn first(&self, is_wanted: impl Fn(f64) -> bool) -> Option<usize> {
        self.descend(0, 0, is_wanted)
    }

    /// The first wanted position after `index`.
    pub(super) fn next(&self, index: usize, is_wanted: impl Fn(f64) -> bool) -> Option<usize> {
        let mut slot = self.first_leaf + index;
        loop {
            let (block, behind) = (slot / WIDTH, slot % WIDTH + 1);
            if let Some(found) = self.descend(block, behind, &is_wanted) {
                return Some(found);
            }
            slot = block.checked_sub(1)?;
        }
    }

    /// The wanted position if it is the only one.
    pub(super) fn only(&self, is_wanted: impl Fn(f64) -> bool) -> Option<usize> {
        let mut block = 0;
        loop {
            let Block(slots) = self.blocks.get(block)?;
            // The number of wanted values in the upper bits, the sum of their slots in the lower. A compiler reduces
            // this to a few instructions, where one bit per slot takes at least one instruction each.
            let marks = (0..).zip(slots).map(|(slot, &value)| {
                let mark: u64 = (1 << 32) | slot;
                if is_wanted(value) { mark } else { 0 }
            });
            let marks: u64 = marks.sum();
            if marks >> 32 != 1 {
                return None;
            }
            let slot = block * WIDTH + (marks & 0xffff_ffff) as usize;
            if slot >= self.first_leaf {
                return Some(slot - self.first_leaf);
            }
            block = slot + 1;
        }
    }

    /// The first wanted position below the slots of a block from `from` on.
    fn descend(&self, block: usize, from: usize, is_wanted: impl Fn(f64) -> bool) -> Option<usize> {
        let (mut block, mut from) = (block, from);
        loop {
            let wanted = (self.wanted(block, &is_wanted)? >> from) << from;
            if wanted == 0 {
                return None;
            }
            let slot = block * WIDTH + wanted.trailing_zeros() as usize;
            if slot >= self.first_leaf {
                return Some(slot - self.first_leaf);
            }
            (block, from) = (slot + 1, 0);
        }
    }

    /// The wanted slots of a block, one bit for each, without branches, which a processor could not predict.
    fn wanted(&self, block: usize, is_wanted: impl Fn(f64) -> bool) -> Option<u32> {
        let Block(slots) = self.blocks.get(block)?;
        let bits = slots.iter().enumerate();
        Some(bits.fold(0, |bits, (slot, &value)| {
            bits | (u32::from(is_wanted(value)) << slot)
        }))
    }

    fn slot(&self, slot: usize) -> Option<f64> {
        let block = self.blocks.get(slot / WIDTH)?;
        block.0.get(slot % WIDTH).copied()
    }

    fn combined<C: Combine>(&self, block: usize) -> f64 {
        let block = self.blocks.get(block);
        block.map_or(C::NOTHING, |&Block(slots)| combine::<C>(slots))
    }
}

fn combine<C: Combine>([a, b, c, d, e, f, g, h]: [f64; WIDTH]) -> f64 {
    // Combines halves, so that the operations do not wait for each other.
    let (a, b, c, d) = (
        C::combine(a, e),
        C::combine(b, f),
        C::combine(c, g),
        C::combine(d, h),
    );
    C::combine(C::combine(a, c), C::combine(b, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum;

    impl Combine for Sum {
        const NOTHING: f64 = 0.0;

        fn combine(one: f64, other: f64) -> f64 {
            one + other
        }
    }

    /// Powers of two, so that a sum shows which values it has.
    fn powers(count: usize) -> Vec<f64> {
        (0..count)
            .map(|power| 2f64.powi(power as i32 % 20))
            .collect()
    }

    #[test]
    fn trees_of_all_depths_combine_every_value_once() {
        for count in [0, 1, 7, 8, 9, 49, 64, 65, 513] {
            let mut values = powers(count);
            let mut tree = BlockTree::new::<Sum>(values.iter().copied(), count);
            assert_eq!(tree.total::<Sum>(), values.iter().sum::<f64>(), "{count}");
            for index in 0..count {
                values[index] += 0.5;
                tree.set::<Sum>(index, values[index]);
                assert_eq!(tree.total::<Sum>(), values.iter().sum::<f64>(), "{count}");
                assert_eq!(tree.value::<Sum>(index), values[index]);
            }
            let held: Vec<f64> = tree.values().take(count).collect();
            assert_eq!(held, values);
        }
    }

    #[test]
    fn missing_values_are_nothing_and_surplus_ones_are_ignored() {
        let few = BlockTree::new::<Sum>([1.0, 2.0], 9);
        assert_eq!(few.total::<Sum>(), 3.0);
        assert_eq!((few.value::<Sum>(8), few.value::<Sum>(99)), (0.0, 0.0));
        let mut many = BlockTree::new::<Sum>([1.0, 2.0, 4.0], 2);
        assert_eq!(many.total::<Sum>(), 3.0);
        many.set::<Sum>(99, 8.0);
        assert_eq!(many.total::<Sum>(), 3.0);
    }

    #[test]
    fn the_first_and_the_next_wanted_are_found_across_blocks() {
        let wanted = [3, 4, 63, 64, 200, 511];
        let values = (0..512).map(|index| f64::from(u8::from(wanted.contains(&index))));
        let tree = BlockTree::new::<Sum>(values, 512);
        let is_wanted = |value| value > 0.0;
        let mut found = tree.first(is_wanted);
        for index in wanted {
            assert_eq!(found, Some(index));
            found = tree.next(index, is_wanted);
        }
        assert_eq!(found, None);
        assert_eq!(tree.only(is_wanted), None);
        let mut one = BlockTree::new::<Sum>([], 512);
        one.set::<Sum>(300, 1.0);
        assert_eq!(one.only(is_wanted), Some(300));
        one.set::<Sum>(301, 1.0);
        assert_eq!(one.only(is_wanted), None);
        assert_eq!(tree.first(|value| value > 99.0), None);
    }
}
