//! The policy that the operator's settings describe.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use shed_core::policy::{Order, Policy, Registry};
use shed_core::settings::Parsed;

use crate::args::OperatorArgs;

/// The flags of the price of a clone, for messages.
const PRICE_FLAGS: &str = "--clone-price-per-attempt and --clone-price-per-slot-second (clonePrice in the chart) set \
                           `clone_price` and `slot_price` of shed-prime";

pub(super) fn of(args: &OperatorArgs, policies: &Registry) -> anyhow::Result<Policy> {
    anyhow::ensure!(
        args.capacity_share > 0.0 && args.capacity_share <= 1.0,
        "--capacity-share {} is not above 0 and at most 1: use a share of the cluster such as 0.8",
        args.capacity_share
    );
    let order = args.order.parse().context("--order")?;
    let without_price = policies.parse(&args.policy, order).context("--policy")?;
    let has_price =
        args.clone_price_per_attempt.is_some() || args.clone_price_per_slot_second.is_some();
    let policy = if has_price {
        let parsed = policies.parse(&priced(args)?, order);
        parsed.context(PRICE_FLAGS)?
    } else {
        without_price
    };
    anyhow::ensure!(
        policy.order != Order::Carbyne,
        "order carbyne needs the graph of each run, which only shed-sim knows: use order drf"
    );
    let policy = Policy {
        capacity_share: args.capacity_share,
        surge_max: args.surge_max,
        ..policy
    };
    match &args.policy_files {
        None => Ok(policy),
        Some(folder) => {
            let context = || format!("--policy-files {}", folder.display());
            let files = texts(folder).with_context(context)?;
            policy.with_files(&files).with_context(context)
        }
    }
}

/// The policy's text with the price of a clone.
fn priced(args: &OperatorArgs) -> anyhow::Result<String> {
    let flags = [
        (
            "--clone-price-per-attempt",
            "clone_price",
            args.clone_price_per_attempt,
        ),
        (
            "--clone-price-per-slot-second",
            "slot_price",
            args.clone_price_per_slot_second,
        ),
    ];
    let parsed = Parsed::new(&args.policy).map_err(anyhow::Error::msg)?;
    let pairs = parsed.pairs.iter();
    let mut parts: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for (flag, parameter, price) in flags {
        let Some(price) = price else { continue };
        anyhow::ensure!(
            parsed.pairs.iter().all(|(name, _)| *name != parameter),
            "{flag} {price}: --policy sets `{parameter}` as well; remove one of them"
        );
        parts.push(format!("{parameter}={price}"));
    }
    Ok(format!("{}{{{}}}", parsed.name, parts.join(",")))
}

/// The policies of the shipped operator.
pub fn policies() -> Registry {
    #[cfg(feature = "papers")]
    return shed_papers::registry();
    #[cfg(not(feature = "papers"))]
    Registry::default()
}

/// The files of a folder, by name; those that a mounted ConfigMap hides begin with a dot.
fn texts(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            let text = std::fs::read_to_string(entry.path());
            texts.insert(name.clone(), text.with_context(|| name)?);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: OperatorArgs,
    }

    /// The policy of these flags, or the error message.
    fn policy_of(flags: &[&str]) -> Result<Policy, String> {
        let words = ["operator", "--agent-image", "i"].iter().chain(flags);
        let command = Command::try_parse_from(words).unwrap();
        of(&command.args, &policies()).map_err(|error| format!("{error:#}"))
    }

    #[cfg(feature = "papers")]
    #[test]
    fn the_chart_knows_the_policies_of_the_registry() {
        let chart = include_str!("../../charts/shed/templates/_checks.tpl");
        let (_, list) = chart.split_once("define \"shed.policies\" -}}").unwrap();
        let (list, _) = list.split_once("{{- end }}").unwrap();
        let listed = list.lines().filter_map(|line| line.strip_prefix("- "));
        let policies = policies();
        let known = policies.all().iter().map(|policy| policy.name());
        assert_eq!(listed.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    }

    #[cfg(feature = "papers")]
    #[test]
    fn a_policy_decides_by_the_files_of_a_folder_or_does_not_start() {
        use shed_papers::laser::{file::networks_to_text, fixtures::networks};

        let name = format!("shed-operator-networks-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        let folder = path.to_str().unwrap();
        let text = networks_to_text(&networks(4)).unwrap();
        let with = |text: &str, policy: &str| {
            std::fs::write(path.join("laser.json"), text).unwrap();
            policy_of(&["--policy", policy, "--policy-files", folder])
        };
        let found = with(&text, "laser{tau_est=0.4}").unwrap();
        let files = found.speculation.files();
        assert_eq!(files, [("laser.json".to_owned(), text.clone())].into());
        let refused = |text: &str, policy: &str, words: &[&str]| {
            let message = with(text, policy).unwrap_err();
            assert!(message.starts_with("--policy-files"), "{message}");
            for word in words.iter().chain(&[folder]) {
                assert!(message.contains(word), "{word}: {message}");
            }
        };
        refused(
            &text,
            "shed-plus",
            &["`shed-plus` reads no file `laser.json`"],
        );
        let other = text.replacen("\"version\":1", "\"version\":2", 1);
        refused(&other, "laser", &["field `version`", "reads version 1"]);
        refused(&text[..90], "laser", &["laser.json", "cut off"]);
        std::fs::remove_dir_all(&path).unwrap();
        let message = policy_of(&["--policy", "laser", "--policy-files", folder]).unwrap_err();
        assert!(message.contains("No such file"), "{message}");
        let none = policy_of(&["--policy", "laser"]).unwrap();
        assert!(none.speculation.files().is_empty());
    }

    #[test]
    fn a_price_of_clones_is_a_parameter_of_the_policy() {
        let per_attempt = "--clone-price-per-attempt=0.1";
        let flags = [
            "--policy=shed-prime{miss_target=0.02}",
            per_attempt,
            "--clone-price-per-slot-second=1e-5",
        ];
        let text = "shed-prime{miss_target=0.02,clone_price=0.1,slot_price=0.00001}";
        let wanted = policies().speculation(text).unwrap();
        assert_eq!(policy_of(&flags).unwrap().speculation, wanted);
        let wanted = policies()
            .speculation("shed-prime{clone_price=0.1}")
            .unwrap();
        assert_eq!(policy_of(&[per_attempt]).unwrap().speculation, wanted);
        let with_order = ["--policy=shed-prime{order=edf}", per_attempt];
        let edf = "edf".parse().unwrap();
        assert_eq!(policy_of(&with_order).unwrap().order, edf);
    }

    #[test]
    fn an_order_that_needs_the_graph_of_runs_is_refused() {
        for flags in [
            ["--order", "carbyne"],
            ["--policy", "shed-prime{order=carbyne}"],
        ] {
            let message = policy_of(&flags).unwrap_err();
            assert!(message.contains("use order drf"), "{message}");
        }
    }

    #[test]
    fn a_price_that_cannot_apply_is_refused() {
        let per_attempt = "--clone-price-per-attempt";
        let check = |flags: &[&str], words: &[&str]| {
            let message = policy_of(flags).unwrap_err();
            for word in words {
                assert!(message.contains(word), "{word}: {message}");
            }
        };
        for price in ["-0.1", "NaN", "inf", "1.5"] {
            let flag = format!("{per_attempt}={price}");
            check(&[&flag], &[per_attempt, "clone_price=", "not from 0 to 1"]);
            let flag = format!("--clone-price-per-slot-second={price}");
            check(&[&flag], &["slot-second", "slot_price=", "not from 0 to 1"]);
        }
        check(
            &[
                "--policy=shed-prime{clone_price=0.1}",
                "--clone-price-per-attempt=0.1",
            ],
            &[
                per_attempt,
                "--policy sets `clone_price` as well",
                "remove one",
            ],
        );
        check(
            &["--policy=shed-plus", "--clone-price-per-attempt=0.1"],
            &[per_attempt, "`shed-plus` has no parameter `clone_price`"],
        );
        check(
            &["--policy=nonsense", "--clone-price-per-attempt=0.1"],
            &["--policy", "nonsense"],
        );
    }
}
