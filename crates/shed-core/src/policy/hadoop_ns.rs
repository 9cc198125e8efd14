//! Hadoop-NS: one attempt per task, never a clone. PoCD is that of [S+] Theorem 1 with r = 0.

use crate::policy::Speculate;
use crate::settings::Setting;

/// No speculation.
pub(super) struct HadoopNs;

impl Speculate for HadoopNs {
    fn name(&self) -> &'static str {
        "hadoop-ns"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        Vec::new()
    }

    fn max_clones(&self) -> u32 {
        0
    }
}
