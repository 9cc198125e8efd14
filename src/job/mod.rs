//! One job as a pass reads it: from ledger, pods and reports to the core's facts. No client, no decision.

mod adopted_job;
pub(crate) mod attempt_outcome;
pub mod disruption_cost;
pub mod expected_end;
pub mod facts;
pub mod gates;
pub mod leftover_pods;
pub mod notice;
pub mod pod_adoption;
mod range;
pub mod record;
pub mod restarts;
pub mod termination_proof;
pub mod troubled_nodes;
pub mod uncommitted;
pub mod unconfirmed_termination;
pub mod unmet_node_requirements;
pub mod unreachable_attempts;
pub mod unstarted;
pub mod verdict;
pub mod view;
