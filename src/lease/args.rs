//! Settings of the election.

use std::time::Duration;

use anyhow::ensure;

use super::elector::Timing;

/// Beyond this a dead leader would be waited for all too long.
const DURATION_MAX: Duration = Duration::from_secs(3600);
const RETRY_MIN: Duration = Duration::from_millis(100);

/// Settings of the election.
#[derive(Debug, Clone, clap::Args)]
pub struct LeaseArgs {
    /// Act only while holding the Lease, so that several replicas may run. If you disable it, make sure that
    /// only one operator runs.
    #[arg(long, env = "SHED_LEADER_ELECT", default_value_t = true, value_name = "BOOL",
        action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true")]
    pub leader_elect: bool,
    /// Name of the Lease.
    #[arg(
        long,
        env = "SHED_LEASE_NAME",
        default_value = "shed",
        value_name = "NAME"
    )]
    pub lease_name: String,
    /// Namespace of the Lease. Absent: the pod's namespace, or that of the current kubeconfig context.
    #[arg(long, env = "SHED_LEASE_NAMESPACE", value_name = "NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// Time without a renewal after which another replica may take the Lease.
    #[arg(long, env = "SHED_LEASE_DURATION", default_value = "12s", value_parser = duration)]
    pub lease_duration: Duration,
    /// Time without a renewal after which the leader stops acting; less than the lease duration.
    #[arg(long, env = "SHED_LEASE_RENEW_DEADLINE", default_value = "8s", value_parser = duration)]
    pub lease_renew_deadline: Duration,
    /// Time between two renewals, and between two attempts of a waiting replica.
    #[arg(long, env = "SHED_LEASE_RETRY_PERIOD", default_value = "2s", value_parser = duration)]
    pub lease_retry_period: Duration,
}

impl LeaseArgs {
    /// The times, if they fit together.
    pub fn timing(&self) -> anyhow::Result<Timing> {
        let (duration, deadline, retry) = (
            self.lease_duration,
            self.lease_renew_deadline,
            self.lease_retry_period,
        );
        ensure!(
            duration.subsec_nanos() == 0 && duration <= DURATION_MAX,
            "--lease-duration {duration:?}: choose whole seconds, at most {DURATION_MAX:?}"
        );
        ensure!(
            deadline + Duration::from_secs(1) <= duration,
            "--lease-renew-deadline {deadline:?}: must be at least 1s less than --lease-duration \
             {duration:?}, so that the leader stops before another replica takes over"
        );
        ensure!(
            retry >= RETRY_MIN && retry * 2 <= deadline,
            "--lease-retry-period {retry:?}: choose at least {RETRY_MIN:?} and at most half of \
             --lease-renew-deadline {deadline:?}, so that one failed renewal does not end the term"
        );
        Ok(Timing {
            duration,
            renew_deadline: deadline,
            retry_period: retry,
        })
    }

    /// The Lease's name, and its namespace or `current`.
    pub fn place(&self, current: &str) -> anyhow::Result<super::Place> {
        let namespace = self.lease_namespace.as_deref().unwrap_or(current);
        let name = self.lease_name.as_str();
        ensure!(
            name.len() <= 253 && name.split('.').all(is_label),
            "--lease-name {name:?}: {}",
            "use lower-case letters, digits and hyphens, starting and ending with a letter or digit"
        );
        ensure!(
            is_label(namespace),
            "--lease-namespace {namespace:?}: invalid namespace; use at most 63 \
             lower-case letters, digits and hyphens"
        );
        Ok(super::Place {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

fn is_label(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    name.len() <= 63
        && bytes.iter().all(|&byte| is_plain(byte) || byte == b'-')
        && bytes.first().is_some_and(|&byte| is_plain(byte))
        && bytes.last().is_some_and(|&byte| is_plain(byte))
}

/// Reads a duration such as `12s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    parsed
        .ok()
        .and_then(|span| Duration::try_from(span).ok())
        .filter(|span| !span.is_zero())
        .ok_or_else(|| "use a duration with its unit, such as 12s or 500ms".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        lease: LeaseArgs,
    }

    fn parse(line: &str) -> Result<LeaseArgs, String> {
        let words = std::iter::once("shed").chain(line.split_whitespace());
        let parsed = Line::try_parse_from(words);
        parsed
            .map(|line| line.lease)
            .map_err(|error| error.to_string())
    }

    fn check_refused(line: &str, wanted: &[&str]) {
        let said = match parse(line) {
            Err(said) => said,
            Ok(args) => match (args.timing(), args.place("team")) {
                (Err(error), _) | (_, Err(error)) => error.to_string(),
                _ => panic!("{line} was not refused"),
            },
        };
        for word in wanted {
            assert!(said.contains(word), "{line}: no {word} in: {said}");
        }
    }

    #[test]
    fn the_defaults_fit_together_and_the_election_can_be_left_out() {
        let args = parse("").unwrap();
        assert!(args.leader_elect && args.timing().is_ok());
        assert_eq!(args.place("team").unwrap().to_string(), "team/shed");
        assert!(!parse("--leader-elect=false").unwrap().leader_elect);
        assert!(parse("--leader-elect").unwrap().leader_elect);
    }

    #[test]
    fn what_is_wrong_names_the_flag_and_the_fix() {
        check_refused("--lease-duration 12", &["--lease-duration", "such as 12s"]);
        check_refused("--lease-duration=-12s", &["--lease-duration"]);
        check_refused("--lease-duration 0s", &["--lease-duration", "such as 12s"]);
        check_refused(
            "--lease-duration 12500ms",
            &["--lease-duration", "whole seconds"],
        );
        check_refused("--lease-duration 2h", &["--lease-duration", "at most"]);
        check_refused(
            "--lease-renew-deadline 12s",
            &["--lease-renew-deadline", "less than --lease-duration"],
        );
        check_refused(
            "--lease-retry-period 5s",
            &["--lease-retry-period", "half of --lease-renew-deadline"],
        );
        check_refused(
            "--lease-retry-period 1ms",
            &["--lease-retry-period", "at least"],
        );
        check_refused("--lease-name Shed_1", &["--lease-name", "lower-case"]);
        check_refused(
            "--lease-namespace a/b",
            &["--lease-namespace", "lower-case"],
        );
        check_refused("--leader-elect=maybe", &["--leader-elect"]);
    }
}
