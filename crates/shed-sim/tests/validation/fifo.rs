//! Central FIFO without clones on real traces gives the figures of independent simulators, to the last digit that
//! they print.

use crate::common::fifo;
use crate::shared::shared_trace;
use shed_sim::engine::Engine;
use shed_sim::outcome::Figures;
use shed_sim::settings::{Cluster, Settings};
use shed_sim::trace;
use shed_sim::workload::{Shaping, shape};

fn figures(name: &str, slots: u32) -> Option<Figures> {
    let path = shared_trace(name)?;
    let trace = trace::read(&path).expect("a sound trace");
    let shaping = Shaping {
        whole_seconds: true,
        ..Shaping::default()
    };
    let cluster = Cluster::Slots(slots);
    let workload = shape(trace, &shaping, &cluster).expect("it fits");
    let settings = Settings::new(fifo(), cluster);
    let outcome = Engine::new(&settings, &workload).run().expect("it ends");
    assert_eq!(outcome.totals.machine_ms, outcome.totals.useful_ms);
    Some(outcome.figures(Some(slots)))
}

fn one_digit(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.1}"))
}

fn check(name: &str, slots: u32, expected: [&str; 4]) {
    let Some(figures) = figures(name, slots) else {
        return;
    };
    let printed = [
        figures.mean_flowtime_s,
        figures.p50_flowtime_s,
        figures.p90_flowtime_s,
        figures.p99_flowtime_s,
    ];
    assert_eq!(printed.map(one_digit), expected, "{name} on {slots} slots");
}

fn check_unlimited(name: &str, mean: &str) {
    // As many slots as the largest trace has tasks.
    if let Some(figures) = figures(name, 300_000) {
        assert_eq!(one_digit(figures.mean_flowtime_s), mean, "{name}");
    }
}

#[test]
fn yahoo_on_4000_slots() {
    check(
        "yahoo_hawk_yh1.csv.gz",
        4000,
        ["483.7", "180.0", "1244.0", "3017.0"],
    );
    check_unlimited("yahoo_hawk_yh1.csv.gz", "148.4");
}

#[test]
fn google_on_12000_slots() {
    check(
        "google2011_hawk_a.csv.gz",
        12_000,
        ["1764.6", "994.0", "3020.0", "14769.0"],
    );
    check_unlimited("google2011_hawk_a.csv.gz", "990.3");
}
