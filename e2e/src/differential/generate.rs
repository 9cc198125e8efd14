//! Random cases, by a seed.

use serde_json::{Value, json};

use super::case::{Act, Case, End, OnDelete, Propagation};
use crate::campaign::draw;

/// Numbers that follow from a seed.
struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(draw(self.seed, self.drawn) % bound).unwrap_or(0)
    }

    /// True once in `times`.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// The case with this number of a seed.
pub fn case(seed: u64, number: u64) -> Case {
    let mut dice = Dice {
        seed: draw(seed, number),
        drawn: 0,
    };
    let spec = spec(&mut dice);
    let held = spec["ttlSecondsAfterFinished"].is_null() && dice.once_in(6);
    let acts = acts(&mut dice, &spec);
    Case {
        name: format!("s{seed}-{number}"),
        on_delete: dice.one_of(&[
            OnDelete::Killed,
            OnDelete::Killed,
            OnDelete::ExitZero,
            OnDelete::Linger,
        ]),
        held,
        spec,
        acts,
    }
}

fn spec(dice: &mut Dice) -> Value {
    let is_indexed = dice.once_in(2);
    let restarts = dice.once_in(4);
    let mut spec = json!({"parallelism": dice.one_of(&[1, 2, 2, 3, 4, 0])});
    let completions = dice.one_of(&[1, 2, 3, 3, 4]);
    if is_indexed {
        spec["completionMode"] = json!("Indexed");
        spec["completions"] = json!(completions);
        indexed(dice, completions, restarts, &mut spec);
    } else if !dice.once_in(4) {
        spec["completions"] = json!(completions);
    }
    if spec["backoffLimitPerIndex"].is_null() || dice.once_in(4) {
        spec["backoffLimit"] = json!(dice.below(3));
    }
    if dice.once_in(5) {
        spec["suspend"] = json!(true);
    }
    if dice.once_in(8) {
        spec["ttlSecondsAfterFinished"] = json!(dice.below(2));
    }
    if !restarts && dice.once_in(3) {
        let per_index = !spec["backoffLimitPerIndex"].is_null();
        spec["podFailurePolicy"] = failure_policy(dice, per_index);
    }
    // A failure policy allows this value only.
    if !spec["podFailurePolicy"].is_null() || dice.once_in(5) {
        spec["podReplacementPolicy"] = json!("Failed");
    }
    if dice.once_in(10) {
        spec["activeDeadlineSeconds"] = json!(100_000);
    }
    spec["template"] = template(dice, restarts);
    spec
}

fn indexed(dice: &mut Dice, completions: u32, restarts: bool, spec: &mut Value) {
    if !restarts && dice.once_in(3) {
        spec["backoffLimitPerIndex"] = json!(dice.below(3));
        // While an index waits, shed starts another one in its slot, and the built-in controller none.
        spec["parallelism"] = json!(completions);
        if dice.once_in(2) {
            spec["maxFailedIndexes"] = json!(dice.below(usize::try_from(completions).unwrap_or(1)));
        }
    }
    if dice.once_in(4) {
        let rule = match dice.below(3) {
            0 => json!({"succeededIndexes": "0"}),
            1 => json!({"succeededCount": 1}),
            _ => json!({"succeededIndexes": format!("0-{}", completions - 1), "succeededCount": 1}),
        };
        spec["successPolicy"] = json!({"rules": [rule]});
    }
}

fn failure_policy(dice: &mut Dice, per_index: bool) -> Value {
    let mut rules = Vec::new();
    if dice.once_in(2) {
        let action = dice.one_of(&["Ignore", "Count", "FailJob"]);
        rules.push(json!({"action": action,
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}));
    }
    let actions: &[&str] = match per_index {
        true => &["Ignore", "Count", "FailJob", "FailIndex"],
        false => &["Ignore", "Count", "FailJob"],
    };
    let codes = match dice.below(3) {
        0 => json!({"operator": "In", "values": [42]}),
        1 => json!({"operator": "NotIn", "values": [1]}),
        _ => json!({"containerName": "main", "operator": "In", "values": [42, 137]}),
    };
    rules.push(json!({"action": dice.one_of(actions), "onExitCodes": codes}));
    json!({"rules": rules})
}

fn template(dice: &mut Dice, restarts: bool) -> Value {
    let policy = if restarts { "OnFailure" } else { "Never" };
    let container = |name: &str| json!({"name": name, "image": "none"});
    let mut main = container("main");
    let mut spec = json!({"restartPolicy": policy});
    if dice.once_in(8) {
        main["env"] = json!([{"name": "JOB_COMPLETION_INDEX", "value": "7"}]);
    }
    if dice.once_in(8) {
        spec["hostname"] = json!("fixed");
        spec["subdomain"] = json!("service");
    }
    let mut containers = vec![main];
    if dice.once_in(6) {
        containers.push(container("second"));
    }
    let mut init = Vec::new();
    if dice.once_in(4) {
        init.push(container("init"));
    }
    if dice.once_in(4) {
        let mut sidecar = container("sidecar");
        sidecar["restartPolicy"] = json!("Always");
        init.push(sidecar);
    }
    spec["containers"] = json!(containers);
    if !init.is_empty() {
        spec["initContainers"] = json!(init);
    }
    let mut template = json!({"spec": spec});
    if dice.once_in(6) {
        template["metadata"] =
            json!({"labels": {"app": "a"}, "annotations": {"example.com/a": "b"}});
    }
    template
}

/// At most two of those after which the built-in controller waits for 10 s or more.
const SLOW_ACTS: usize = 2;

fn acts(dice: &mut Dice, spec: &Value) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut slow = 0;
    let mut is_suspended = spec["suspend"] == true;
    for _ in 0..dice.below(7) {
        let act = act(dice, spec, is_suspended);
        let is_slow = matches!(act, Act::DeletePod { .. } | Act::Evict { .. });
        slow += usize::from(is_slow);
        if is_slow && slow > SLOW_ACTS {
            continue;
        }
        match act {
            Act::Suspend => is_suspended = true,
            Act::Resume => is_suspended = false,
            _ => {}
        }
        let is_last = matches!(act, Act::DeleteJob { .. });
        acts.push(act);
        if is_last {
            break;
        }
    }
    acts
}

fn act(dice: &mut Dice, spec: &Value, is_suspended: bool) -> Act {
    let pod = dice.below(4);
    let runs_all = !spec["backoffLimitPerIndex"].is_null();
    if is_suspended {
        return match dice.below(5) {
            0 => Act::Template,
            1 if runs_all => Act::Resume,
            1 => Act::Parallelism {
                to: dice.one_of(&[0, 1, 2, 4]),
            },
            2 => delete_job(dice),
            _ => Act::Resume,
        };
    }
    match dice.below(22) {
        0..=7 => Act::End {
            pod,
            end: end(dice, spec),
        },
        8 | 9 => Act::EndAll {
            code: dice.one_of(&[0, 0, 1, 42]),
        },
        10 | 11 => Act::Restart {
            pod,
            container: dice.below(3),
        },
        12 => Act::NotReady { pod },
        13 => Act::Suspend,
        14 | 15 if !runs_all => Act::Parallelism {
            to: dice.one_of(&[0, 1, 2, 4]),
        },
        14..=16 => match spec["completionMode"] == "Indexed" {
            true => Act::Completions {
                to: dice.one_of(&[1, 2, 4]),
            },
            false => Act::BackoffLimit {
                to: dice.one_of(&[0, 1, 2]),
            },
        },
        17 => Act::ActiveDeadline,
        18 => Act::DeletePod {
            pod,
            force: dice.once_in(3),
        },
        19 => Act::Evict { pod },
        20 => Act::Release,
        _ => delete_job(dice),
    }
}

fn end(dice: &mut Dice, spec: &Value) -> End {
    let has_init = spec["template"]["spec"]["initContainers"][0]["name"] == "init";
    match dice.below(14) {
        0..=4 => End::Success,
        5..=7 => dice.one_of(&[End::Error, End::Error, End::Exit42]),
        8 => End::OomKilled,
        9 => End::PodDeadline,
        10 => End::NodeShutdown,
        11 => End::NodePressure,
        12 => End::Collected,
        _ if has_init => End::InitFailed,
        _ => End::Success,
    }
}

fn delete_job(dice: &mut Dice) -> Act {
    let propagation = dice.one_of(&[
        Propagation::Background,
        Propagation::Foreground,
        Propagation::Orphan,
    ]);
    Act::DeleteJob { propagation }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn cases() -> impl Iterator<Item = Case> {
        (0..1000).map(|number| case(1, number))
    }

    #[test]
    fn a_seed_makes_the_same_cases_again_and_another_one_others() {
        assert_eq!(case(3, 5), case(3, 5));
        assert_ne!(case(3, 5).spec, case(4, 5).spec);
    }

    /// Otherwise the built-in controller would take minutes to try again.
    #[test]
    fn limits_are_at_most_two() {
        for case in cases() {
            for limit in ["backoffLimit", "backoffLimitPerIndex"] {
                let limit = &case.spec[limit];
                assert!(
                    limit.is_null() || limit.as_u64() <= Some(2),
                    "{}",
                    case.yaml()
                );
            }
        }
    }

    #[test]
    fn a_thousand_cases_have_every_field_and_every_act() {
        let mut had = BTreeSet::new();
        for case in cases() {
            had.extend(case.spec.as_object().unwrap().keys().cloned());
            let pod = case.spec["template"]["spec"].as_object().unwrap();
            had.extend(pod.keys().cloned());
            for act in case.acts {
                let act = serde_json::to_value(act).unwrap();
                had.insert(act["act"].as_str().unwrap().to_owned());
                had.extend(act["end"].as_str().map(str::to_owned));
                had.extend(act["propagation"].as_str().map(str::to_owned));
            }
        }
        for name in [
            "completionMode",
            "parallelism",
            "completions",
            "backoffLimit",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
            "podFailurePolicy",
            "successPolicy",
            "podReplacementPolicy",
            "suspend",
            "ttlSecondsAfterFinished",
            "activeDeadlineSeconds",
            "initContainers",
            "hostname",
            "End",
            "EndAll",
            "Restart",
            "NotReady",
            "Suspend",
            "Resume",
            "Parallelism",
            "Completions",
            "BackoffLimit",
            "ActiveDeadline",
            "Template",
            "DeletePod",
            "Evict",
            "Release",
            "DeleteJob",
            "Success",
            "Error",
            "Exit42",
            "OomKilled",
            "PodDeadline",
            "NodeShutdown",
            "NodePressure",
            "Collected",
            "InitFailed",
            "Background",
            "Foreground",
            "Orphan",
        ] {
            assert!(had.contains(name), "no case has {name}");
        }
    }
}
