//! The papers' slot count: how many slots are usable and how many are left for clones.

/// Added before rounding down, since 0.29·100 is 28.999… in doubles.
const SNAP: f64 = 1e-9;

/// ⌊λ·m⌋, the slots that may be used of `slots` (m) when the share `lambda` is usable (Shed (11), Shed+ (11)). NaN or
/// a negative number gives 0.
pub fn usable_slots(lambda: f64, slots: u32) -> i64 {
    let usable = (lambda * f64::from(slots) + SNAP).floor();
    // `as` saturates and maps NaN to 0, which is the intended result.
    usable.max(0.0) as i64
}

/// κ: the slots for extra attempts once every task has its one attempt and every job its master (`masters` is |J| in
/// the papers, 0 on Kubernetes). Zero or less means no clones.
pub fn clone_capacity(usable: i64, base_attempts: u64, masters: u64) -> i64 {
    let base = i64::try_from(base_attempts.saturating_add(masters)).unwrap_or(i64::MAX);
    usable.saturating_sub(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_that_is_whole_on_paper_is_not_rounded_away() {
        assert_eq!(usable_slots(0.29, 100), 29);
        assert_eq!(usable_slots(0.5, 25), 12);
        assert_eq!(usable_slots(1.0, 138), 138);
    }

    #[test]
    fn nonsense_shares_give_no_slots() {
        assert_eq!(usable_slots(f64::NAN, 100), 0);
        assert_eq!(usable_slots(-1.0, 100), 0);
    }

    #[test]
    fn the_capacity_may_be_negative() {
        assert_eq!(clone_capacity(3, 5, 2), -4);
        assert_eq!(clone_capacity(10, u64::MAX, 1), 10 - i64::MAX);
    }
}
