//! The same work on several threads.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// As many threads as there are cores.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The results for all items, in the order of the items whichever thread made them. After an
/// error no further item is started. A panic of a thread continues in the caller.
///
/// # Errors
/// The work on some item failed; if several did, the error is that of any one of them.
pub fn in_order<I: Sync, T: Send, E: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.clamp(1, items.len().max(1)));
    match pool.build() {
        // Items differ in cost by orders of magnitude, so each can be stolen alone.
        Ok(pool) => pool.install(|| items.par_iter().with_max_len(1).map(&work).collect()),
        // The system grants no threads.
        Err(_) => items.iter().map(&work).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn results_keep_the_order_of_items_on_any_number_of_threads() {
        let items: Vec<u64> = (2..50).collect();
        let expected: Vec<u64> = items.iter().map(|number| number * number).collect();
        for threads in [0, 1, 3, 64] {
            let squares = in_order(&items, threads, |number| {
                // Later items are finished first.
                (0..(50 - number) * 2000).for_each(|turn| {
                    std::hint::black_box(turn);
                });
                Ok::<u64, Infallible>(number * number)
            });
            assert_eq!(squares.unwrap(), expected, "{threads} threads");
        }
        assert_eq!(in_order(&[], 2, |(): &()| Ok::<(), ()>(())), Ok(vec![]));
    }

    #[test]
    fn an_error_ends_the_work() {
        let items: Vec<u64> = (0..20).collect();
        let failed = in_order(&items, 3, |number| match number {
            13 => Err(*number),
            _ => Ok(()),
        });
        assert_eq!(failed, Err(13));
    }
}
