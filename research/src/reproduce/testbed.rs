//! The testbed of the Shed papers: equal slots, Pareto times, a launch that takes long, and the five
//! strategies that they compare.
//!
//! Readings: Shed and Shed+ are as printed, resume, and end a job at its deadline; the baselines start
//! clones over and let late jobs run on. Dolly has no budget, and its p is 1 less the PoCD of Hadoop-S
//! on the same workload. The baselines know no deadline: each is run once, and its jobs within D are
//! counted. Hadoop-S looks every 3 s, as often as attempts report. First attempts are served first come, first served.

use super::findings::{Gate, Line, Sample};
use super::lab::{Lab, Runs};
use super::tried;
use super::verdict::Check;
use crate::LabError;

/// What the papers leave open about their testbed. A variant of a figure has other values than [`AS_READ`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SetUp {
    /// From an attempt's launch to its start: seconds, or a share of the job's median.
    pub(super) launch: &'static str,
    /// Longest time of an attempt in seconds.
    pub(super) longest: Option<u32>,
    /// Whether the load counts launches: a slot is busy from the launch of its task on.
    pub(super) counts_launches: bool,
    /// Further flags of `shed-sim run`.
    pub(super) more: &'static str,
}

/// The specification's reading of Shed+'s testbed.
pub(super) const AS_READ: SetUp = SetUp {
    launch: "60",
    longest: Some(600),
    counts_launches: false,
    more: "--job-masters",
};

/// Variants of [`AS_READ`]: causes that a difference from the paper may have.
pub(super) const VARIANTS: [(&str, SetUp); 5] = [
    (
        "launch 20 s",
        SetUp {
            launch: "20",
            ..AS_READ
        },
    ),
    (
        "launch 6 s",
        SetUp {
            launch: "6",
            ..AS_READ
        },
    ),
    (
        "the load counts launches",
        SetUp {
            counts_launches: true,
            ..AS_READ
        },
    ),
    (
        "times not cut off",
        SetUp {
            longest: None,
            ..AS_READ
        },
    ),
    (
        "no job masters",
        SetUp {
            more: "",
            ..AS_READ
        },
    ),
];

/// Shortest time of an attempt in seconds, and the shape of the distribution.
const T_MIN: f64 = 120.0;
const BETA: f64 = 2.0;

impl SetUp {
    /// Equal slots and a workload of the paper; `parameters` name its sizes.
    pub(super) fn testbed(&self, name: &str, parameters: &str, load: f64) -> Testbed {
        let longest = self
            .longest
            .map_or(String::new(), |max| format!(",max={max}"));
        let load = self.load(load);
        Testbed {
            workload: format!("{name}{{{parameters}{longest},load={load:.4}}}"),
            slots: 138,
            launch: self.launch,
            beta: BETA,
            t_min: T_MIN,
            runs_on: false,
            more: self.more,
        }
    }

    /// The load in the simulator's sense, which counts the tasks' own times.
    fn load(&self, load: f64) -> f64 {
        match self.launch.parse::<f64>() {
            Ok(launch) if self.counts_launches => {
                let mean = self.mean_time();
                load * mean / (mean + launch)
            }
            _ => load,
        }
    }

    fn mean_time(&self) -> f64 {
        let whole = BETA * T_MIN / (BETA - 1.0);
        self.longest.map_or(whole, |longest| {
            let share = T_MIN / f64::from(longest);
            let kept = 1.0 - libm::pow(share, BETA - 1.0);
            whole * kept / (1.0 - libm::pow(share, BETA))
        })
    }
}

/// A set-up with its workload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Testbed {
    /// The synthetic workload: its name and parameters, without deadline.
    pub(super) workload: String,
    pub(super) slots: u32,
    /// From an attempt's launch to its start: seconds, or a share of the job's median.
    pub(super) launch: &'static str,
    pub(super) beta: f64,
    /// In seconds.
    pub(super) t_min: f64,
    /// Whether Shed and Shed+ let late jobs run on, so that all have a time.
    pub(super) runs_on: bool,
    /// Further flags.
    pub(super) more: &'static str,
}

impl Testbed {
    /// The same, but Shed and Shed+ let late jobs run on.
    pub(super) fn on_after_deadline(&self) -> Self {
        Self {
            runs_on: true,
            ..self.clone()
        }
    }

    fn resuming(&self) -> &'static str {
        if self.runs_on {
            "--resume offset"
        } else {
            "--resume offset --on-miss fail"
        }
    }

    fn flags(&self, policy: &str, deadline: u32, more: &str) -> String {
        format!(
            "--trace setup:{} --slots {} --launch-overhead {} {} --policy {policy} {more}",
            self.workload_with(deadline),
            self.slots,
            self.launch,
            self.more
        )
    }

    fn workload_with(&self, deadline: u32) -> String {
        let deadline = format!("deadline={deadline}");
        match self.workload.strip_suffix('}') {
            Some(text) => format!("{text},{deadline}}}"),
            None => format!("{}{{{deadline}}}", self.workload),
        }
    }

    pub(super) fn hadoop_s(&self, lab: &mut Lab) -> Result<Runs, LabError> {
        lab.run(&self.flags("hadoop-s{order=fifo,interval=3}", NO_DEADLINE, ""))
    }

    pub(super) fn hopper(&self, lab: &mut Lab) -> Result<Runs, LabError> {
        let policy = format!("hopper{{beta={},order=fifo}}", self.beta);
        lab.run(&self.flags(&policy, NO_DEADLINE, ""))
    }

    /// `p`: the probability that an attempt straggles, between 0 and 1.
    pub(super) fn dolly(&self, lab: &mut Lab, p: f64) -> Result<Runs, LabError> {
        let p = p.clamp(0.01, 0.99);
        let policy = format!("dolly{{p={p:.2},budget=1,utilisation=1,order=fifo}}");
        lab.run(&self.flags(&policy, NO_DEADLINE, "--max-clones 20"))
    }

    /// Dolly as the papers set it: p is the share of Hadoop-S's jobs that miss D.
    pub(super) fn dolly_at(&self, lab: &mut Lab, deadline: u32) -> Result<Runs, LabError> {
        let hadoop = self.hadoop_s(lab)?;
        self.dolly(lab, 1.0 - within(&hadoop, deadline).mean() / 100.0)
    }

    pub(super) fn shed(&self, lab: &mut Lab, deadline: u32) -> Result<Runs, LabError> {
        let policy = format!("shed{{t_min={},beta={},order=fifo}}", self.t_min, self.beta);
        lab.run(&self.flags(&policy, deadline, self.resuming()))
    }

    /// `more`: further parameters, each after a comma.
    pub(super) fn plus(&self, lab: &mut Lab, deadline: u32, more: &str) -> Result<Runs, LabError> {
        let policy = format!("shed-plus{{order=fifo{more}}}");
        lab.run(&self.flags(&policy, deadline, self.resuming()))
    }

    /// The deadline that the share `q` of jobs meets under Hadoop-S, in whole seconds.
    pub(super) fn deadline_at(&self, lab: &mut Lab, q: f64) -> Result<u32, LabError> {
        let runs = self.hadoop_s(lab)?;
        let jobs = runs.0.iter().flat_map(|run| &run.jobs);
        let mut flows: Vec<f64> = jobs.filter_map(|job| job.flow).collect();
        flows.sort_by(f64::total_cmp);
        let at = (q * flows.len() as f64) as usize;
        let flow = flows.get(at.min(flows.len().saturating_sub(1)));
        Ok(flow.map_or(1, |flow| flow.ceil().max(1.0) as u32))
    }

    /// All five at one deadline.
    pub(super) fn five(&self, lab: &mut Lab, deadline: u32) -> Result<Five, LabError> {
        Ok(Five {
            deadline,
            plus: self.plus(lab, deadline, "")?,
            shed: self.shed(lab, deadline)?,
            dolly: self.dolly_at(lab, deadline)?,
            hopper: self.hopper(lab)?,
            hadoop: self.hadoop_s(lab)?,
        })
    }
}

/// So far away that all jobs meet it, in seconds.
const NO_DEADLINE: u32 = 1_000_000;

/// Jobs completed within `deadline` seconds of their arrival, in %.
pub(super) fn within(runs: &Runs, deadline: u32) -> Sample {
    runs.sample(|run| run.within(f64::from(deadline)))
}

/// The strategies of the papers on one workload.
#[derive(Debug, Clone)]
pub(super) struct Five {
    deadline: u32,
    pub(super) plus: Runs,
    pub(super) shed: Runs,
    pub(super) dolly: Runs,
    pub(super) hopper: Runs,
    pub(super) hadoop: Runs,
}

/// Their names, in the order of [`Five::met`].
pub(super) const NAMES: [&str; 5] = ["Shed+", "Shed", "Dolly", "Hopper", "Hadoop-S"];

impl Five {
    /// Deadlines met in %, in the order of [`NAMES`].
    pub(super) fn met(&self) -> [Sample; 5] {
        let of = |runs| within(runs, self.deadline);
        let others = [&self.dolly, &self.hopper, &self.hadoop].map(of);
        let [dolly, hopper, hadoop] = others;
        [self.plus.met(), self.shed.met(), dolly, hopper, hadoop]
    }

    /// The workload's name with the deadline.
    pub(super) fn name(&self, of: &str) -> String {
        format!("{of}, D {} s", self.deadline)
    }

    /// A line for each of the first policies that has a printed value and a check.
    pub(super) fn lines(
        &self,
        of: &str,
        source: &'static str,
        printed: &[(f64, Check)],
    ) -> Vec<Line> {
        let met = NAMES.iter().zip(self.met()).zip(printed);
        met.map(|((name, met), (value, check))| {
            let what = format!("{of}: {name}, deadlines met, %");
            Line::new(what, source, *value, met, *check)
        })
        .collect()
    }

    /// Shed+ ≥ Shed ≥ each of the others.
    pub(super) fn order(&self, of: &str) -> Vec<Gate> {
        let met = self.met();
        let [plus, shed, others @ ..] = &met;
        let mut gates = vec![Gate::not_below(format!("{of}: Shed+ ≥ Shed"), plus, shed)];
        for (name, other) in NAMES.iter().skip(2).zip(others) {
            gates.push(Gate::not_below(format!("{of}: Shed ≥ {name}"), shed, other));
        }
        gates
    }
}

/// Tries [`VARIANTS`] for the lines that differ.
pub(super) fn try_variants(
    lab: &mut Lab,
    findings: &mut super::findings::Findings,
    lines: impl Fn(&mut Lab, &SetUp) -> Result<Vec<Line>, LabError>,
) -> Result<(), LabError> {
    tried(lab, findings, &VARIANTS, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_one_more_parameter_of_the_workload() {
        for (workload, with) in [
            ("P-1", "setup:P-1{deadline=400} "),
            (
                "P-4{tasks=20,load=0.5}",
                "setup:P-4{tasks=20,load=0.5,deadline=400} ",
            ),
        ] {
            let testbed = Testbed {
                workload: workload.to_owned(),
                ..AS_READ.testbed("P-1", "jobs=9", 0.4)
            };
            let flags = testbed.flags("shed", 400, "");
            assert!(flags.contains(with), "{flags}");
        }
    }

    #[test]
    fn a_load_that_counts_launches_has_fewer_tasks() {
        // The mean time is 200 s, so that a launch of 60 s takes a fifth more than a quarter.
        assert!((AS_READ.mean_time() - 200.0).abs() < 1e-9);
        let (_, counting) = VARIANTS[2];
        assert!((counting.load(0.52) - 0.4).abs() < 1e-9);
        assert!((AS_READ.load(0.52) - 0.52).abs() < 1e-9);
    }
}
