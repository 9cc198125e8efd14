//! shed compared with the built-in Job controller: the same pods under both, in turn, on a real control plane with
//! fake nodes. Requests are counted from the apiserver's audit log; CPU and memory are those of the processes.

mod figures;
pub mod load;
mod page;
pub(crate) mod run;
mod runs;
mod tables;

use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use self::figures::{Figures, Key, Outcome, Runs};
use self::load::{Kind, Size};
use self::run::Load;
use crate::bench::audit::SHED;
use crate::bench::components::{self, Pids, components};
use crate::bench::operator;
use crate::bench::results::Line;
use crate::bench::site::Site;
use crate::bench::{Bench, Common};
use crate::host_operator::HostOperator;

/// Compares shed with the built-in Job controller.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench_scale", mut_arg("results", |arg| arg.required(false).default_value("target/bench-scale/runs.jsonl")))]
pub struct Options {
    /// Loads: number of jobs x tasks of each.
    #[arg(long, value_delimiter = ',', default_value = "1x1000,200x10")]
    pub size: Vec<Size>,
    /// Kinds of jobs. Ratios need `job`, and `job-pareto` for clones.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "job,disabled,adopted,job-pareto,clones"
    )]
    pub kind: Vec<Kind>,
    /// Repetitions of each size, interleaved: all kinds once, then all kinds again.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// How long one run may take, in seconds.
    #[arg(long, default_value_t = 1800)]
    pub run_seconds: u64,
    #[command(flatten)]
    common: Common,
}

impl Bench for Options {
    const NAME: &'static str = "bench-scale";
    type Load = Key;
    type Figures = Outcome;

    fn common(&self) -> &Common {
        &self.common
    }

    fn loads(&self) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        for &size in &self.size {
            for repetition in 1..=self.repeat {
                let kinds = self.kind.iter().filter(|kind| size.has(**kind));
                keys.extend(kinds.map(|&kind| Key {
                    size,
                    repetition,
                    kind,
                }));
            }
        }
        Ok(keys)
    }

    /// A run that failed is repeated.
    fn is_left(&self, load: Key, known: &Runs) -> bool {
        known.get(&load).is_none_or(|line| !self.is_clean(line))
    }

    /// A ratio of two versions says nothing.
    fn must_match(&self, _load: Key) -> bool {
        true
    }

    async fn prepare(&self, site: &Site) -> Result<()> {
        site.make_account().await?;
        run::ensure_capacity(&site.client, &self.size).await
    }

    async fn measure(&self, site: &Site, load: Key) -> Result<Outcome> {
        match self.run(site, load).await {
            Ok(figures) => Ok(Outcome {
                failure: None,
                figures: Some(figures),
            }),
            Err(error) => {
                let failure = format!("{error:#}");
                eprintln!("{}: it failed: {failure}", Self::NAME);
                Ok(Outcome {
                    failure: Some(failure),
                    figures: None,
                })
            }
        }
    }

    fn page(lines: &Runs, note: &str) -> String {
        page::page(Self::NAME, lines, note)
    }

    fn is_clean(&self, line: &Line<Key, Outcome>) -> bool {
        line.figures.failure.is_none()
    }
}

impl Options {
    /// One run next to an operator of its own.
    async fn run(&self, site: &Site, Key { size, kind, .. }: Key) -> Result<Figures> {
        components::restart_controller_manager(&site.kubeconfig).await?;
        let limit = Duration::from_secs(self.run_seconds);
        let load = Load::prepare(site, limit, size, kind).await?;
        let went = match size {
            Size::Finished => measure_idle(site, &load).await,
            _ => measure(site, &load).await,
        };
        load.remove().await?;
        went
    }
}

async fn measure(site: &Site, load: &Load<'_>) -> Result<Figures> {
    let (operator, pids) = start_operator(site).await?;
    let figures = load.measure(&pids).await;
    operator.stop().await?;
    figures
}

/// Both controllers start after the jobs have finished.
async fn measure_idle(site: &Site, load: &Load<'_>) -> Result<Figures> {
    load.finish(&components(&site.kubeconfig)?).await?;
    components::restart_controller_manager(&site.kubeconfig).await?;
    let (operator, pids) = start_operator(site).await?;
    components::idle("the operator", operator.pid()?).await?;
    let figures = load.idle(&pids).await;
    operator.stop().await?;
    figures
}

async fn start_operator(site: &Site) -> Result<(HostOperator, Pids)> {
    let kubeconfig = site.operator_kubeconfig();
    let operator = operator::start(&site.program, &kubeconfig, &site.folder).await?;
    let mut pids = components(&site.kubeconfig)?;
    pids.insert(SHED.to_owned(), operator.pid()?);
    Ok((operator, pids))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::bench::tests::{options, published, refusal};

    #[test]
    fn kinds_are_interleaved_within_each_size() {
        let arguments = "--size 200x10,1x1000 --repeat 2 --kind job,adopted";
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let loads = options::<Options>(&arguments).loads().unwrap();
        let order: Vec<String> = loads.iter().map(ToString::to_string).collect();
        assert_eq!(
            order[..5],
            [
                "200x10 job #1",
                "200x10 adopted #1",
                "200x10 job #2",
                "200x10 adopted #2",
                "1x1000 job #1"
            ]
        );
        assert_eq!(order.len(), 8);
    }

    #[test]
    fn a_wrong_size_or_kind_is_answered_with_the_valid_ones() {
        for (wrong, valid) in [
            (["--size", "2x2"], "200x10"),
            (["--kind", "pods"], "adopted"),
        ] {
            let said = refusal::<Options>(&wrong);
            assert!(said.contains(wrong[1]) && said.contains(valid), "{said}");
        }
    }

    #[test]
    fn a_run_that_failed_is_left_to_do() {
        let (options, lines) = (options::<Options>(&[]), runs::tests::lines());
        let left: Vec<&Key> = lines
            .keys()
            .filter(|key| options.is_left(**key, &lines))
            .collect();
        assert_eq!(left, [&runs::tests::key(Kind::Adopted, 1)]);
    }

    #[test]
    fn the_docs_have_the_page_of_their_results() {
        let (written, docs) = published::<Options>();
        assert_eq!(written, docs);
    }

    #[test]
    fn every_size_has_a_name_of_its_own() {
        let names: Vec<String> = Size::value_variants()
            .iter()
            .map(|size| size.name())
            .collect();
        assert_eq!(
            names,
            [
                "20x5", "1x1000", "1x10000", "200x10", "1000x10", "100x100", "finished"
            ]
        );
    }
}
