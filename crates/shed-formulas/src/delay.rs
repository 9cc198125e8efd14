//! DollyMP §5.2: from which upstream copy the copies of a downstream task read (delay assignment,
//! Dolly's mechanism).

/// Roles of an upstream task's copies.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayAssignment {
    /// When the downstream task may start, in the unit of the finish times.
    pub release: f64,
    /// Per downstream copy the position of the upstream copy that it reads.
    pub source: Vec<usize>,
    /// Upstream copies that are killed, and when; by time, then position.
    pub killed: Vec<(usize, f64)>,
}

/// Assigns the upstream copies to `downstream` copies. `finish` holds the upstream copies' finish
/// times and `locality` their levels (0 node, 1 rack, 2 off-rack). `None` without upstream copies.
///
/// If there are enough upstream copies, the downstream copies wait for one more than the first to
/// finish: the one with the best locality. They then read from both in turn. Otherwise all read
/// from the first. Ties go to the lower position. With `max_wait` the second copy is killed that
/// long after the first finish; the paper gives no bound.
pub fn delay_assignment(
    finish: &[f64],
    locality: &[u32],
    downstream: usize,
    max_wait: Option<f64>,
) -> Option<DelayAssignment> {
    let (first, &first_end) = finish
        .iter()
        .enumerate()
        .min_by(|a, b| a.1.total_cmp(b.1))?;
    let others = (0..finish.len()).filter(|&copy| copy != first);
    let waits = downstream >= 2 && finish.len() >= downstream;
    let nearest = |&copy: &usize| (locality.get(copy).copied().unwrap_or(u32::MAX), copy);
    let kept = others.clone().filter(|_| waits).min_by_key(nearest);
    let mut killed: Vec<(usize, f64)> = others
        .filter(|&copy| Some(copy) != kept)
        .map(|copy| (copy, first_end))
        .collect();
    let latest = first_end + max_wait.unwrap_or(f64::INFINITY);
    let (release, second) = match kept.and_then(|copy| Some((copy, *finish.get(copy)?))) {
        None => (first_end, first),
        Some((copy, end)) if end <= latest => (end, copy),
        Some((copy, _)) => {
            killed.push((copy, latest));
            (latest, first)
        }
    };
    let turns = [first, second].into_iter().cycle();
    Some(DelayAssignment {
        release,
        source: turns.take(downstream).collect(),
        killed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_copy_that_ends_exactly_at_the_bound_is_used() {
        let found = delay_assignment(&[3.0, 13.0], &[0, 0], 2, Some(10.0)).unwrap();
        assert_eq!((found.release, found.source), (13.0, vec![0, 1]));
    }

    #[test]
    fn without_copies_there_is_nothing_to_read() {
        assert_eq!(delay_assignment(&[], &[], 2, None), None);
    }

    #[test]
    fn a_copy_that_never_ends_is_given_up_after_the_bound() {
        let found = delay_assignment(&[3.0, f64::INFINITY], &[0, 0], 2, Some(10.0)).unwrap();
        assert_eq!((found.release, found.source), (13.0, vec![0, 0]));
        assert_eq!(found.killed, [(1, 13.0)]);
    }
}
