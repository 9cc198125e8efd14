//! How long shed takes to act, by the apiserver's own timestamps: a loser's delete after the winner's end, a clone
//! after its straggler is certain, a first pod after a new job. Each is measured over the arrival rate of jobs.

mod chart;
mod load;
mod page;
mod quantiles;
mod run;
mod timeline;

use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use self::load::{Load, Rate, STORM_ARRIVALS, STORM_RATE};
use self::page::{WRITE_LIMIT_MS, steady};
use self::timeline::Latencies;
use crate::bench::results::{Line, Lines};
use crate::bench::site::Site;
use crate::bench::{Bench, Common};

/// Measures how long shed takes to delete losers, to start clones and to begin jobs.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench_latency", mut_arg("results", |arg| arg.required(false).default_value("target/bench-latency/loads.jsonl")))]
pub struct Options {
    /// Loads: jobs per second, each of ten tasks. The bench stops after the first at which the apiserver is too slow.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0.5,1,1.5,2,3,4,6,8,12,16"
    )]
    pub rate: Vec<Rate>,
    /// Jobs that arrive at once, in a load of its own; 0 for no such load.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub storm: u32,
    /// Whether only that load is run. The steady loads of the results may then be of another build of the operator.
    #[arg(long)]
    pub only_storm: bool,
    /// For how long jobs arrive, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    #[command(flatten)]
    common: Common,
}

impl Bench for Options {
    const NAME: &'static str = "bench-latency";
    type Load = Load;
    type Figures = Latencies;

    fn common(&self) -> &Common {
        &self.common
    }

    /// The storm, then the steady loads in rising order.
    fn loads(&self) -> Result<Vec<Load>> {
        let mut rates = self.rate.clone();
        rates.sort();
        rates.dedup();
        let steady = rates.into_iter().filter(|_| !self.only_storm);
        let steady = steady.map(|rate| Load { storm: 0, rate });
        let storm = (self.storm > 0).then_some(Load {
            storm: self.storm,
            rate: STORM_RATE,
        });
        Ok(storm.into_iter().chain(steady).collect())
    }

    /// None is left beyond a load at which the apiserver was too slow.
    fn is_left(&self, load: Load, known: &Lines<Load, Latencies>) -> bool {
        if load.storm > 0 {
            return !known.keys().any(|load| load.storm > 0);
        }
        let mut slow = steady(known).filter(|line| !line.is_below_limit());
        !known.contains_key(&load) && slow.all(|slow| load.rate < slow.load.rate)
    }

    fn must_match(&self, load: Load) -> bool {
        load.storm > 0 || !self.only_storm
    }

    async fn prepare(&self, site: &Site) -> Result<()> {
        site.make_account().await
    }

    async fn measure(&self, site: &Site, load: Load) -> Result<Latencies> {
        let time = match load.storm {
            0 => Duration::from_secs(self.seconds),
            _ => STORM_ARRIVALS,
        };
        let found = run::measure(site, load, time).await?;
        if load.storm == 0 && !found.is_below_limit() {
            eprintln!(
                "{}: the p99 of the apiserver's writes is {:.1} ms, more than {WRITE_LIMIT_MS}: no higher load is run",
                Self::NAME,
                found.writes.p99
            );
        }
        Ok(found)
    }

    fn page(lines: &Lines<Load, Latencies>, note: &str) -> String {
        page::page(Self::NAME, lines, note)
    }

    fn charts(lines: &Lines<Load, Latencies>) -> Result<Vec<(String, String)>> {
        let histogram = chart::histogram(lines)?;
        let named = histogram.map(|svg| (page::histogram_of(Self::NAME), svg));
        Ok(named.into_iter().collect())
    }

    fn is_clean(&self, line: &Line<Load, Latencies>) -> bool {
        line.meets_bar()
    }
}

#[cfg(test)]
mod tests {
    use super::page::tests::line;
    use super::*;
    use crate::bench::tests::{options, published, refusal};

    #[test]
    fn an_unknown_load_is_refused_with_what_is_one() {
        let said = refusal::<Options>(&["--rate", "1,fast"]);
        assert!(
            said.contains("fast") && said.contains("jobs per second"),
            "{said}"
        );
    }

    #[test]
    fn the_docs_have_the_page_of_their_results() {
        let (written, docs) = published::<Options>();
        assert_eq!(written, docs);
    }

    fn left(options: &Options, known: &[Line<Load, Latencies>]) -> Vec<String> {
        let known = known.iter().map(|line| (line.load, line.clone())).collect();
        let loads = options.loads().unwrap().into_iter();
        let left = loads.filter(|load| options.is_left(*load, &known));
        left.map(|load| load.to_string()).collect()
    }

    #[test]
    fn loads_rise_and_end_where_the_apiserver_is_too_slow() {
        let options: Options = options(&["--rate", "4,1,2,8,1", "--storm", "0"]);
        let left = |known: &[Line<Load, Latencies>]| left(&options, known);
        let names = |rates: &[&str]| -> Vec<String> {
            let names = rates.iter().map(|rate| format!("{rate} jobs per second"));
            names.collect()
        };
        assert_eq!(left(&[]), names(&["1", "2", "4", "8"]));
        assert_eq!(left(&[line("2", 0, 9.0, 20.0)]), names(&["1", "4", "8"]));
        assert_eq!(left(&[line("4", 0, 25.0, 60.0)]), names(&["1", "2"]));
    }

    #[test]
    fn the_storm_comes_first_and_once() {
        let options: Options = options(&["--only-storm"]);
        let name = "4 jobs per second, and 300 at once";
        assert_eq!(left(&options, &[]), [name]);
        assert!(left(&options, &[line("4", 300, 5.0, 900.0)]).is_empty());
        let steady = Load {
            storm: 0,
            rate: STORM_RATE,
        };
        assert!(!options.must_match(steady), "of another build");
    }
}
