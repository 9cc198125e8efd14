//! Hadoop-NS: one attempt per task, never a clone. PoCD is that of [S+] Theorem 1 with r = 0.

use crate::policy::contract::{Judgement, PolicyRule, Recall};
use crate::round::JobView;

/// No speculation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HadoopNs;

impl PolicyRule for HadoopNs {
    type Belief = ();
    type State = ();
    type Place = ();

    fn name(&self) -> &'static str {
        "hadoop-ns"
    }

    fn max_clones(&self) -> u32 {
        0
    }

    fn looks_at_all(&self) -> bool {
        false
    }

    fn judge(&self, _: &JobView<'_>, _: &Recall<'_, ()>) -> Judgement<()> {
        Judgement::none()
    }
}
