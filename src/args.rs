//! The arguments of `shed operator`.

use std::net::SocketAddr;
use std::str::FromStr;

use k8s_openapi::api::core::v1::SecurityContext;

use crate::adopt::AdoptJobs;
use crate::api::is_clone_budget;
use crate::lease::args::LeaseArgs;

/// Settings of the operator; the Helm chart sets them through the environment.
#[derive(Debug, Clone, clap::Args)]
pub struct OperatorArgs {
    /// Policy that launches clones, with its parameters, for example `shed-plus{xi=0.1,order=edf}`.
    #[arg(long, env = "SHED_POLICY", default_value = "shed-prime")]
    pub policy: String,
    /// Price of a clone, in expected deadlines met, from 0 to 1: a clone must gain as much. Absent: the policy's own,
    /// 0.02 for shed-prime. Only for policies with the parameter `clone_price`.
    #[arg(
        long,
        env = "SHED_CLONE_PRICE_PER_ATTEMPT",
        value_name = "PRICE",
        allow_negative_numbers = true
    )]
    pub clone_price_per_attempt: Option<f64>,
    /// Price of each second for which a clone is expected to hold its slot, in expected deadlines met, from 0 to 1.
    /// Absent: the policy's own, 0 for shed-prime. Only for policies with the parameter `slot_price`.
    #[arg(
        long,
        env = "SHED_CLONE_PRICE_PER_SLOT_SECOND",
        value_name = "PRICE",
        allow_negative_numbers = true
    )]
    pub clone_price_per_slot_second: Option<f64>,
    /// Limit of clones, as a share of a job's own slot-seconds, from 0 to 20. A job or its namespace can set a lower
    /// one. A straggler may have one clone whatever the limit. Absent: no limit.
    #[arg(long, env = "SHED_CLONE_BUDGET", value_name = "SHARE", allow_negative_numbers = true,
        value_parser = clone_budget)]
    pub clone_budget: Option<f64>,
    /// A folder with files that the policy decides by.
    #[arg(long, env = "SHED_POLICY_FILES", value_name = "FOLDER")]
    pub policy_files: Option<std::path::PathBuf>,
    /// Order of first attempts when capacity is short: lst, edf, fifo, capacity, drf, tetris,
    /// srpt, svf or dollymp. With one namespace, capacity is fifo. An `order=` in the policy takes precedence.
    #[arg(long, env = "SHED_ORDER", default_value = "lst")]
    pub order: String,
    /// Share of the cluster that attempts may use (the papers' λ), above 0 and at most 1.
    #[arg(long, env = "SHED_CAPACITY_SHARE", default_value_t = 1.0)]
    pub capacity_share: f64,
    /// First attempts of each namespace that may wait as Pending pods beyond capacity, so that autoscalers
    /// see the demand.
    #[arg(long, env = "SHED_SURGE_MAX", default_value_t = 1)]
    pub surge_max: u32,
    /// Image of the sidecar: the image of this binary.
    #[arg(long, env = "SHED_AGENT_IMAGE")]
    pub agent_image: String,
    /// Pull policy of the sidecar's image.
    #[arg(long, env = "SHED_AGENT_PULL_POLICY", default_value = "IfNotPresent")]
    pub agent_pull_policy: String,
    /// Name of the pull secret for the sidecar's image, in the jobs' namespaces.
    #[arg(long, env = "SHED_AGENT_PULL_SECRET")]
    pub agent_pull_secret: Option<String>,
    /// Security context of the sidecar's container, as JSON, for example `{"runAsUser": 1000}`. Absent: the level
    /// `restricted` without a user id.
    #[arg(long, env = "SHED_AGENT_SECURITY_CONTEXT", value_name = "JSON",
        value_parser = crate::attempt_pod::agent_context::parse)]
    pub agent_security_context: Option<SecurityContext>,
    /// Name of the Secret, in the operator's own namespace, with the keys for orders to agents and their answers; the
    /// operator creates it if it is missing.
    #[arg(long, env = "SHED_SIGNING_SECRET", default_value = "shed-signing-key")]
    pub signing_secret: String,
    /// Id of the key in that Secret that new attempts get; the operator makes the key if the Secret lacks it. Attempts
    /// that were launched with another id keep their key.
    #[arg(long, env = "SHED_SIGNING_KEY_ID", default_value = "1", value_parser = key_id)]
    pub signing_key_id: String,
    /// Name of the ConfigMap, in the operator's own namespace, that keeps for the next leader what shed has
    /// learned from past jobs; the operator creates it if it is missing.
    #[arg(long, env = "SHED_STATE_CONFIG_MAP", default_value = "shed-state")]
    pub state_config_map: String,
    /// PriorityClass of clones. Absent: clones keep the template's class.
    #[arg(long, env = "SHED_CLONE_PRIORITY_CLASS")]
    pub clone_priority_class: Option<String>,
    /// Annotate attempts at risk with `controller.kubernetes.io/pod-deletion-cost`, so that other pods are disrupted
    /// first: at most two writes to a pod.
    #[arg(long, env = "SHED_DELETION_COST")]
    pub deletion_cost: bool,
    /// Annotate attempts at risk so that Karpenter and the cluster autoscaler do not disrupt their nodes at all.
    #[arg(long, env = "SHED_DO_NOT_DISRUPT")]
    pub do_not_disrupt: bool,
    /// Annotate attempts with their expected end, `shed.dev/expected-end`: at most one write a minute to a pod.
    #[arg(long, env = "SHED_EXPECTED_END")]
    pub expected_end: bool,
    /// Give Jobs that wait in a queue of Kueue the WorkloadPriorityClasses shed-slack-0 to shed-slack-9, by the time that
    /// is left until their deadline.
    #[arg(long, env = "SHED_KUEUE_SLACK_CLASSES")]
    pub kueue_slack_classes: bool,
    /// The batch/v1 Jobs that shed runs: managed (those with `managedBy:
    /// shed.dev/deadline-controller`), all (also those of the built-in Job controller, which must
    /// be switched off) or none.
    #[arg(long, env = "SHED_ADOPT_JOBS", value_enum, default_value_t = AdoptJobs::Managed)]
    pub adopt_jobs: AdoptJobs,
    /// Maximum progress polls per second over all jobs; with more attempts shed polls each one less often.
    #[arg(long, env = "SHED_PROGRESS_POLLS_PER_SECOND", default_value_t = 1000, value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub progress_polls_per_second: u32,
    /// Poll attempts at loopback addresses too. Only for tests, whose fake pods listen on this machine: in a
    /// cluster a node could make the operator poll itself.
    #[arg(long, env = "SHED_POLL_LOOPBACK", hide = true)]
    pub poll_loopback: bool,
    /// Address of /metrics, /healthz and /readyz.
    #[arg(long, env = "SHED_HTTP_ADDRESS", default_value = "0.0.0.0:8080")]
    pub http_address: std::net::SocketAddr,
    /// Address of /healthz and /readyz for the kubelet's probes. Absent: only --http-address serves them.
    #[arg(long, env = "SHED_PROBE_ADDRESS", value_name = "ADDRESS")]
    pub probe_address: Option<std::net::SocketAddr>,
    /// Loopback address on which the leader answers questions about jobs, nodes and plans, or off. It has no
    /// authentication: kubectl shed reaches it by a port-forward to the leader's pod.
    #[arg(
        long,
        env = "SHED_ASK_ADDRESS",
        default_value = "off",
        value_name = "ADDRESS"
    )]
    pub ask_address: AskAddress,
    /// Serve --http-address over TLS, and /metrics only to clients with a bearer token whose user may get the non-resource
    /// URL /metrics. The probes of --probe-address stay plain.
    #[arg(long, env = "SHED_METRICS_SECURE")]
    pub metrics_secure: bool,
    /// Folder with the certificate, tls.crt, and its key, tls.key, read again when they change. Absent: a self-signed
    /// certificate.
    #[arg(long, env = "SHED_METRICS_CERT_DIR", value_name = "FOLDER")]
    pub metrics_cert_dir: Option<std::path::PathBuf>,
    /// Unfinished jobs with metrics of their own: those most at risk. All jobs are in the histograms of their
    /// namespaces.
    #[arg(long, env = "SHED_METRICS_JOBS", default_value_t = crate::metrics::OWN_MAX, value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub metrics_jobs: u32,
    /// Record the planner's input and decisions in this folder, for `shed-sim replay`.
    #[arg(long, env = "SHED_RECORD", value_name = "DIR")]
    pub record: Option<std::path::PathBuf>,
    /// Maximum size of these files in MiB; shed deletes the oldest first.
    #[arg(long, env = "SHED_RECORD_MAX_MIB", default_value_t = 256, value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub record_max_mib: u32,
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Write logs as JSON, one object per line.
    #[arg(long, env = "SHED_LOG_JSON")]
    pub log_json: bool,
}

/// A part of the name of an entry in a Secret.
fn key_id(text: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match text.len() {
        1..=40 if text.chars().all(is_fit) => Ok(text.to_owned()),
        _ => Err("use 1 to 40 of the characters a-z, 0-9 and -, such as 2".to_owned()),
    }
}

fn clone_budget(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    let share = share.filter(|share| is_clone_budget(*share));
    share.ok_or_else(|| {
        "use a share of a job's own slot-seconds from 0 to 20, such as 0.2".to_owned()
    })
}

/// Where the leader answers (`--ask-address`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskAddress {
    /// Nowhere.
    Off,
    /// On this loopback address.
    At(SocketAddr),
}

impl FromStr for AskAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let address: Option<SocketAddr> = text.parse().ok();
        let address = address.filter(|address| address.ip().is_loopback());
        address.map(Self::At).ok_or_else(|| {
            "--ask-address must be a loopback address with a port, such as 127.0.0.1:9444, or off. It has no \
             authentication, so every client that reaches it can read the jobs of all namespaces"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clone_budget_is_a_share_from_0_to_20() {
        assert_eq!(clone_budget("0.2"), Ok(0.2));
        for text in ["-0.1", "21", "NaN", "a fifth", ""] {
            assert!(
                clone_budget(text).unwrap_err().contains("such as 0.2"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_leader_answers_on_loopback_only() {
        let read = |text: &str| text.parse::<AskAddress>();
        assert_eq!(read("off"), Ok(AskAddress::Off));
        for text in ["127.0.0.1:9444", "127.8.0.1:1", "[::1]:9444"] {
            assert_eq!(read(text), Ok(AskAddress::At(text.parse().unwrap())));
        }
        for text in [
            "0.0.0.0:9444",
            "10.0.0.7:9444",
            "[::]:9444",
            "[::ffff:127.0.0.1]:9444",
            "localhost:9444",
            "127.0.0.1",
            "9444",
            "",
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("--ask-address must be a loopback"), "{text}");
        }
    }
}
