use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::task::Poll;

use futures::future::poll_fn;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Reconciles what is named for this time, by a closure that returns the wake of each reconcile.
async fn run_for<F: Future<Output = Wake>>(
    time: Duration,
    named: mpsc::UnboundedReceiver<u32>,
    mut reconcile: impl FnMut(&u32) -> F,
) {
    let queue = run(UnboundedReceiverStream::new(named), |key, _| reconcile(key));
    assert!(timeout(time, queue).await.is_err(), "it has no end");
}

#[tokio::test(start_paused = true)]
async fn a_key_sent_during_its_reconcile_gets_exactly_one_more() {
    let (name, named) = mpsc::unbounded_channel();
    let (at_once, count) = (Cell::new(0), Cell::new(0));
    let reconcile = |_: &u32| async {
        at_once.set(at_once.get() + 1);
        assert_eq!(at_once.get(), 1);
        count.set(count.get() + 1);
        sleep(SECOND).await;
        at_once.set(at_once.get() - 1);
        Wake::await_change()
    };
    let naming = async {
        for _ in 0..3 {
            name.send(7).unwrap();
            sleep(SECOND / 10).await;
        }
        sleep(10 * SECOND).await;
    };
    tokio::join!(naming, run_for(10 * SECOND, named, reconcile));
    assert_eq!(count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_is_due_earlier_replaces_a_later_one() {
    let (name, named) = mpsc::unbounded_channel();
    let begun = tokio::time::Instant::now();
    let times = RefCell::new(Vec::new());
    // The first wake is after a minute, the next ones are never.
    let reconcile = |_: &u32| {
        times.borrow_mut().push(begun.elapsed().as_secs());
        let is_first = times.borrow().len() == 1;
        async move {
            match is_first {
                true => Wake::requeue(60 * SECOND),
                false => Wake::await_change(),
            }
        }
    };
    let naming = async {
        name.send(7).unwrap();
        sleep(20 * SECOND).await;
        name.send(7).unwrap();
    };
    tokio::join!(naming, run_for(200 * SECOND, named, reconcile));
    assert_eq!(*times.borrow(), [0, 20]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_comes_at_its_time_and_one_beyond_all_clocks_never() {
    let (name, named) = mpsc::unbounded_channel();
    let begun = tokio::time::Instant::now();
    let times = RefCell::new(BTreeMap::<u32, Vec<u64>>::new());
    let reconcile = |key: &u32| {
        let of_key = &mut *times.borrow_mut();
        of_key
            .entry(*key)
            .or_default()
            .push(begun.elapsed().as_secs());
        let wait = if *key == 1 {
            30 * SECOND
        } else {
            Duration::MAX
        };
        async move { Wake::requeue(wait) }
    };
    name.send(1).unwrap();
    name.send(2).unwrap();
    run_for(100 * SECOND, named, reconcile).await;
    let expected = [(1, vec![0, 30, 60, 90]), (2, vec![0])];
    assert_eq!(*times.borrow(), BTreeMap::from(expected));
}

#[tokio::test(start_paused = true)]
async fn news_of_one_object_poll_no_other() {
    const OTHERS: u32 = 1000;
    let (name, named) = mpsc::unbounded_channel();
    let polls = Cell::new(0_u32);
    let news = Notify::new();
    // The reconciles of the others wait for something that never comes; that of 0 is woken 100 times.
    let reconcile = |key: &u32| {
        let (key, polls, news) = (*key, &polls, &news);
        async move {
            let mut waits = pin!(async {
                for _ in 0..if key == 0 { 100 } else { u32::MAX } {
                    match key {
                        0 => news.notified().await,
                        _ => std::future::pending().await,
                    }
                }
            });
            poll_fn(|context| {
                polls.set(polls.get() + 1);
                match waits.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(Wake::await_change()),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        }
    };
    let naming = async {
        (0..=OTHERS).for_each(|key| name.send(key).unwrap());
        sleep(SECOND).await;
        let begun = polls.get();
        assert_eq!(begun, OTHERS + 1);
        for _ in 0..100 {
            news.notify_one();
            // More of the others, which have begun.
            name.send(1).unwrap();
            sleep(SECOND).await;
        }
        assert_eq!(polls.get() - begun, 100);
    };
    tokio::join!(naming, run_for(200 * SECOND, named, reconcile));
}
