//! A plan's text and figures for one job: the actions for it, their reasons, gains and costs, and the actions that
//! were refused.

use std::fmt;

use crate::ids::{JobKey, TaskIndex};
use crate::plan::{
    CapacityReport, CloneReport, JobReport, KillReport, Launch, LaunchReason, Move, Plan,
    RefusalReason, Trade,
};
use crate::snapshot::AttemptKind;
use crate::time::Instant;

/// A plan's statements about one job; its text has a line per statement.
#[derive(Debug, Clone)]
pub struct Explanation<'a> {
    now: Instant,
    report: &'a JobReport,
    capacity: &'a CapacityReport,
    launches: Vec<&'a Launch>,
    next_pass: Option<Instant>,
}

/// Explains the slice of a plan, made at `now`, that concerns the job; `None` if the plan has no such job.
pub fn explain<'a>(now: Instant, plan: &'a Plan, job: &JobKey) -> Option<Explanation<'a>> {
    let report = plan.report.jobs.iter().find(|report| report.key == *job)?;
    let actions = plan.actions.iter().filter(|planned| planned.job == *job);
    let launches = actions.filter_map(|planned| match &planned.action {
        Move::Launch(launch) => Some(launch),
        _ => None,
    });
    Some(Explanation {
        now,
        report,
        capacity: &plan.report.capacity,
        launches: launches.collect(),
        next_pass: plan.report.next_pass,
    })
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state(f)?;
        for kill in &self.report.kills {
            write_kill(f, kill)?;
        }
        self.launches(f)?;
        for refusal in &self.report.refusals {
            let why = refusal_words(refusal.why);
            writeln!(f, "task {} gets no clone: {why}", refusal.task)?;
        }
        if let Some(budget) = self.report.clone_budget {
            let (clones, own) = (budget.clones + budget.granted, budget.own);
            writeln!(
                f,
                "budget of clones: {clones:.1} slot-seconds for {own:.1} of the job's own"
            )?;
        }
        if self.report.waiting > 0 {
            writeln!(f, "{} first attempts wait", self.report.waiting)?;
        }
        write_capacity(f, self.capacity)?;
        match self.next_pass {
            Some(next) => writeln!(f, "next pass in {:.1} s", next.since(self.now).seconds()),
            None => writeln!(f, "next pass when something happens"),
        }
    }
}

impl Explanation<'_> {
    fn state(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        write!(f, "job {}: ", report.key)?;
        match (report.pocd_before, report.pocd_after) {
            (Some(before), Some(after)) => {
                write!(f, "PoCD {before:.4}, {after:.4} with this plan")?
            }
            _ => write!(f, "PoCD unknown")?,
        }
        match report.estimated_completion {
            Some(end) => {
                let seconds = end.since(self.now).seconds();
                writeln!(f, ", expected to be complete in {seconds:.1} s")?;
            }
            None => writeln!(f, ", expected completion unknown")?,
        }
        let looked = match (report.is_cut_short, report.optimized) {
            (true, _) => "the pass ran out of work",
            (false, true) => "examined the job",
            (false, false) => "was not due",
        };
        write!(f, "the policy about clones: {looked}")?;
        if report.stragglers.is_empty() {
            return writeln!(f, ", no task is late");
        }
        let late: Vec<String> = report.stragglers.iter().map(TaskIndex::to_string).collect();
        writeln!(f, ", late tasks: {}", late.join(", "))
    }

    fn launches(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut clones = self.report.clones.iter();
        for launch in &self.launches {
            if launch.kind == AttemptKind::Clone {
                write_launch(f, launch)?;
                write_worth(f, clones.next())?;
            } else {
                write_launch(f, launch)?;
                match self.report.attempt_slot_seconds {
                    Some(cost) => writeln!(f, "; costs about {cost:.1} slot-seconds")?,
                    None => writeln!(f, "; its cost is unknown")?,
                }
            }
        }
        // The remaining clones were only decided, because the job observes.
        for clone in clones {
            write!(f, "would launch a clone of task {}", clone.task)?;
            write_worth(f, Some(clone))?;
        }
        Ok(())
    }
}

fn write_launch(f: &mut fmt::Formatter<'_>, launch: &Launch) -> fmt::Result {
    let from = launch.resume.as_ref().map_or(0.0, |point| point.progress);
    let (kind, task) = (launch.kind.label(), launch.task);
    write!(
        f,
        "launches task {task} as {kind} from {:.0} %: ",
        from * 100.0
    )?;
    match launch.reason {
        LaunchReason::Admitted if launch.surge => {
            write!(f, "no capacity is free, and the cluster may grow")
        }
        LaunchReason::Admitted => write!(f, "it has no attempt, and capacity is free"),
        LaunchReason::Straggler {
            pocd_before,
            pocd_after,
        } => write!(f, "it is late; PoCD {pocd_before:.4} → {pocd_after:.4}"),
        LaunchReason::Rule {
            finding,
            pocd_before: Some(before),
            pocd_after: Some(after),
        } => write!(f, "{finding}; PoCD {before:.4} → {after:.4}"),
        LaunchReason::Rule { finding, .. } => write!(f, "{finding}; PoCD unknown"),
    }
}

fn write_worth(f: &mut fmt::Formatter<'_>, clone: Option<&CloneReport>) -> fmt::Result {
    match clone {
        Some(clone) => {
            let (gain, cost) = (clone.pocd_gain, clone.cost_slot_seconds);
            writeln!(f, "; gains {gain:.4}, costs about {cost:.1} slot-seconds")?;
            clone
                .trade
                .as_ref()
                .map_or(Ok(()), |trade| write_trade(f, trade))
        }
        None => writeln!(f),
    }
}

fn write_trade(f: &mut fmt::Formatter<'_>, trade: &Trade) -> fmt::Result {
    let (gain, price) = (trade.gain, trade.price);
    write!(
        f,
        "  gains {gain:.4} over later clones for a price of {price:.4}; "
    )?;
    match &trade.alternative {
        Some(alternative) => writeln!(f, "the best alternative was {alternative}"),
        None => writeln!(f, "nothing else would have gained"),
    }
}

fn write_kill(f: &mut fmt::Formatter<'_>, kill: &KillReport) -> fmt::Result {
    let (kind, attempt, task) = (kill.kind.label(), kill.attempt, kill.task);
    write!(f, "{kind}: stops attempt {attempt} of task {task}, ")?;
    match kill.survivor {
        Some(survivor) => write!(f, "attempt {survivor} continues")?,
        None => write!(f, "which is launched again when capacity is free")?,
    }
    match kill.freed_slot_seconds {
        Some(freed) => write!(f, "; frees about {freed:.1} slot-seconds")?,
        None => write!(f, "; the freed capacity is unknown")?,
    }
    match kill.miss_added {
        Some(miss) => writeln!(f, ", the task's miss rises by {miss:.4}"),
        None => writeln!(f),
    }
}

fn write_capacity(f: &mut fmt::Formatter<'_>, capacity: &CapacityReport) -> fmt::Result {
    let amounts = capacity.usable.iter().map(|(name, usable)| {
        let (used, after) = (capacity.used.get(name), capacity.used_after.get(name));
        format!("{name} {used} → {after} of {usable}")
    });
    let amounts: Vec<String> = amounts.collect();
    writeln!(f, "capacity: {}", amounts.join(", "))
}

fn refusal_words(why: RefusalReason) -> &'static str {
    match why {
        RefusalReason::Capacity => "no usable capacity is left",
        RefusalReason::NoNode => "no eligible node has enough free capacity for it",
        RefusalReason::Hopeless => "no clone could bring it in time",
        RefusalReason::Maximum => "it has the maximum number of clones",
        RefusalReason::CloneFailures => "two clones of it failed",
        RefusalReason::Disrupted => "a clone of it was disrupted recently",
        RefusalReason::NotIdempotent => "two copies of it would be harmful",
        RefusalReason::Observe => "the job only observes",
        RefusalReason::Budget => "the policy's own limit of clones is reached",
        RefusalReason::Work => "the pass ran out of work",
        RefusalReason::Target => "the job's PoCD has reached its target",
        RefusalReason::Stopped => "an administrator stopped new clones",
        RefusalReason::JobBudget => "the job's budget of clones is used up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::decide;
    use crate::fixtures::{JobBuilder, attempt, job, world};
    use crate::memory::Memory;
    use crate::policy::Policy;
    use crate::snapshot::{Snapshot, SpeculationMode};

    /// At 30 s: two tasks will take 70 s, task 2 will take 280 s, and 160 s are allowed.
    fn straggling() -> JobBuilder {
        let regular = |node| attempt(0).on(node).progress(0.4, 29.0);
        job("a")
            .tasks(4)
            .deadline_in(160.0)
            .task(0, [regular(0)])
            .task(1, [regular(1)])
            .task(2, [attempt(0).on(2).progress(0.1, 29.0)])
    }

    fn explained(builder: JobBuilder, policy: &str) -> (Snapshot, Plan, String) {
        let snapshot = world(30.0, 4, 4000).job(builder).build();
        let policy: Policy = policy.parse().unwrap();
        let (plan, _) = decide(&snapshot, Memory::default(), &policy);
        let text = explain(snapshot.now, &plan, &JobKey::from("a")).unwrap();
        let text = text.to_string();
        (snapshot, plan, text)
    }

    #[track_caller]
    fn has(text: &str, line: &str) {
        assert!(
            text.lines().any(|other| other.contains(line)),
            "{line}\nis not in\n{text}"
        );
    }

    #[test]
    fn every_action_is_named_with_its_reason_gain_and_cost() {
        let (_, plan, text) = explained(straggling(), "shed-plus{max_clones=1}");
        let report = &plan.report.jobs[0];
        has(&text, "late tasks: 2");
        has(
            &text,
            "launches task 3 as original from 0 %: it has no attempt, and capacity is free",
        );
        let clone = &report.clones[0];
        has(
            &text,
            "launches task 2 as clone from 0 %: it is late; PoCD ",
        );
        has(
            &text,
            &format!(
                "gains {:.4}, costs about {:.1} slot-seconds",
                clone.pocd_gain, clone.cost_slot_seconds
            ),
        );
        let launched = text
            .lines()
            .filter(|line| line.starts_with("launches"))
            .count();
        assert_eq!(launched, plan.actions.len());
        has(&text, "capacity: cpu 3000 → 5000 of 16000");
        has(&text, "next pass in ");
    }

    #[test]
    fn the_price_of_a_clone_and_its_best_alternative_are_named() {
        // It ends in 40 s, give or take 4 s, and 41 s are left. Another attempt takes 20 s.
        let late = attempt(0).on(0).progress(0.4, 29.0);
        let late = job("a").tasks(1).deadline_in(71.0).task(0, [late]);
        let (_, plan, text) = explained(late.ended_runs([20.0; 40]), "shed-prime");
        let trade = plan.report.jobs[0].clones[0].trade.clone().unwrap();
        let (gain, price) = (trade.gain, trade.price);
        assert!(gain >= price && price > 0.0, "{trade:?}");
        let line = format!("  gains {gain:.4} over later clones for a price of {price:.4}; ");
        has(&text, &line);
        has(
            &text,
            "the best alternative was to wait for the next report, which gains ",
        );
    }

    #[test]
    fn a_job_that_observes_is_told_what_would_be_done() {
        let observing = straggling().speculation(SpeculationMode::Observe);
        let (_, _, text) = explained(observing, "shed-plus{max_clones=1}");
        has(&text, "would launch a clone of task 2; gains ");
        has(&text, "task 2 gets no clone: the job only observes");
    }

    #[test]
    fn kills_and_refusals_are_explained() {
        let racing = straggling().with(|job| {
            let clone = attempt(1).launched(20.0).progress(0.3, 29.0).on(3);
            let built = crate::fixtures::job("x").task(2, [clone]).build();
            let attempts = built.tasks.into_iter().flat_map(|task| task.attempts);
            job.tasks[2].attempts.extend(attempts);
        });
        let (_, _, text) = explained(racing, "shed-plus");
        has(
            &text,
            "prune: stops attempt 0 of task 2, attempt 1 continues; frees about ",
        );
        has(&text, "the task's miss rises by 0.");
        let (_, _, text) = explained(straggling().max_clones(0), "shed-plus");
        has(
            &text,
            "task 2 gets no clone: it has the maximum number of clones",
        );
        let (_, _, text) = explained(straggling().clone_budget(0.0), "shed-plus");
        has(
            &text,
            "task 2 gets no clone: the job's budget of clones is used up",
        );
        has(&text, "budget of clones: ");
    }

    #[test]
    fn a_job_that_the_plan_does_not_know_has_no_explanation() {
        let plan = Plan::default();
        assert!(explain(Instant(0), &plan, &JobKey::from("b")).is_none());
    }
}
