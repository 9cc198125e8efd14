use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::sleep;

use super::*;
use crate::fixtures;
use crate::metrics::loose_counter;

fn watch(polls: &Arc<Polls>) -> Watch {
    let term = Term {
        writes: WriteGate::new(None, loose_counter()),
    };
    Watch::new(Arc::clone(polls), term)
}

fn job(name: &str) -> Option<Arc<DeadlineJob>> {
    let mut job = fixtures::job("");
    job.metadata.name = Some(name.to_owned());
    Some(Arc::new(job))
}

fn name(stuck: &Stuck) -> Option<String> {
    stuck.job.as_ref()?.metadata.name.clone()
}

/// Result of this many checks.
fn look(polls: &Polls, times: u32) -> Option<Stuck> {
    (0..times).filter_map(|_| polls.look()).last()
}

#[test]
fn a_poll_is_stuck_when_twenty_looks_in_a_row_have_found_it() {
    let polls = Arc::new(Polls::default());
    let watch = watch(&polls);
    let poll = watch.begin(job("count"));
    assert!(look(&polls, TICKS_MAX - 1).is_none());
    let stuck = polls.look().expect("stuck");
    assert_eq!(name(&stuck).as_deref(), Some("count"));
    drop(poll);
    assert!(look(&polls, 2 * TICKS_MAX).is_none(), "it has ended");
}

#[test]
fn polls_that_end_or_go_on_are_never_stuck() {
    let polls = Arc::new(Polls::default());
    let watch = watch(&polls);
    for _ in 0..10 {
        let _poll = watch.begin(job("count"));
        assert!(look(&polls, TICKS_MAX - 1).is_none());
    }
    let pass = watch.begin(None);
    for number in 0..10 {
        pass.goes_on(job(&format!("job-{number}")));
        assert!(look(&polls, TICKS_MAX - 1).is_none());
    }
    assert_eq!(name(&polls.look().unwrap()).as_deref(), Some("job-9"));
}

#[tokio::test]
async fn a_poll_that_panics_has_ended() {
    let polls = Arc::new(Polls::default());
    let panics = async {
        tokio::task::yield_now().await;
        panic!("on purpose");
    };
    let over = watch(&polls).over(job("count"), panics);
    assert!(tokio::spawn(over).await.unwrap_err().is_panic());
    assert!(look(&polls, 2 * TICKS_MAX).is_none());
}

/// The one thread of its runtime is caught in a loop without an await.
#[test]
fn a_loop_without_an_await_is_noticed_on_one_thread() {
    let polls = Arc::new(Polls::default());
    let (found, waiting) = mpsc::channel();
    let tick = Duration::from_millis(2);
    let report = move |stuck: Stuck| found.send(name(&stuck)).expect("the test waits");
    start(&polls, tick, report).unwrap();
    let (ends, over) = (Arc::new(AtomicBool::new(false)), watch(&polls));
    let spins = Arc::clone(&ends);
    let spinning = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(over.over(job("spins"), async {
            tokio::task::yield_now().await;
            while !spins.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }));
    });
    let found = waiting.recv_timeout(Duration::from_secs(30));
    ends.store(true, Ordering::Relaxed);
    spinning.join().unwrap();
    assert_eq!(found.unwrap().as_deref(), Some("spins"));
}

const CHILD: &str = "SHED_TEST_WATCHDOG_CHILD";
/// Twenty of these are two seconds.
const CHILD_TICK: Duration = Duration::from_millis(100);

/// The process that the next test stops. Its poll takes a tenth of the time that counts as stuck.
#[test]
fn child_with_a_poll_of_two_ticks() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let polls = Arc::new(Polls::default());
    start(&polls, CHILD_TICK, |_| std::process::exit(70)).unwrap();
    let poll = watch(&polls).begin(job("count"));
    println!("\nbegun");
    sleep(2 * CHILD_TICK);
    drop(poll);
    // Long enough to be ended for the poll if it passed for stuck.
    sleep(3 * CHILD_TICK);
}

fn signal(name: &str, process: u32) {
    let command = format!("kill -{name} {process}");
    let status = Command::new("sh").args(["-c", &command]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_process_that_was_stopped_for_long_has_no_stuck_poll() {
    let this = "watchdog::tests::child_with_a_poll_of_two_ticks";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let begun = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line == "begun");
    assert!(lines.any(|line| begun(&line)), "the child has a poll");
    signal("STOP", child.id());
    sleep(CHILD_TICK * (TICKS_MAX + 10));
    signal("CONT", child.id());
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}");
}
