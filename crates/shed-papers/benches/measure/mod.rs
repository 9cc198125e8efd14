//! How the benchmarks measure: CPU time of the one thread, and the machine's other load.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;

/// The machine's load, as a remark.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    format!("load {}", if first.is_empty() { "unknown" } else { first })
}

/// Minimum and median CPU time of `runs` calls.
pub fn time<R>(runs: usize, mut call: impl FnMut() -> R) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let begin = ThreadTime::now();
            black_box(call());
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[0], times[runs / 2])
}

pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
