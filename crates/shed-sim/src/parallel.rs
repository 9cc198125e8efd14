//! The same work on several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// As many threads as there are cores.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The results of `work` for each number, in their order. A panic in a thread is propagated.
pub fn in_order<T: Send>(
    numbers: Range<u64>,
    threads: usize,
    work: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let next = AtomicU64::new(numbers.start);
    let share = || {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < numbers.end);
        let own = std::iter::from_fn(take).map(|number| (number, work(number)));
        own.collect::<Vec<(u64, T)>>()
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        let mut all = share();
        for other in others {
            match other.join() {
                Ok(more) => all.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_numbers_whoever_made_them() {
        for threads in [0, 1, 3] {
            let squares = in_order(2..50, threads, |number| number * number);
            let expected: Vec<u64> = (2..50).map(|number| number * number).collect();
            assert_eq!(squares, expected);
        }
        assert!(in_order(5..5, 2, |number| number).is_empty());
    }
}
