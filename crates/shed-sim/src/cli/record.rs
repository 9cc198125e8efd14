//! `run --record`: writes a simulated run in the operator's format.

use std::collections::BTreeMap;
use std::path::Path;

use shed_core::memory::Memory;
use shed_core::plan::{Plan, Settled};
use shed_core::policy::Policy;
use shed_core::snapshot::{JobSnapshot, Snapshot};
use shed_core::time::Instant;
use shed_record::schema::{Decided, Ended};
use shed_record::{Basis, Pass, WriteError, Writer};

use super::CliError;
use crate::engine::Watch;

/// Writes each pass; stops at the first fault.
pub(super) struct Recording {
    writer: Writer,
    fault: Option<WriteError>,
}

impl Recording {
    /// Without a size limit, because a simulated run ends.
    pub(super) fn new(folder: &Path, policy: &Policy) -> Self {
        Self {
            writer: Writer::new(folder, u64::MAX, policy, Instant(0)),
            fault: None,
        }
    }

    pub(super) fn finish(mut self) -> Result<(), CliError> {
        let finished = match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.writer.finish(),
        };
        finished.map_err(|fault| CliError::Write {
            what: format!("the recording {}", fault.path.display()),
            error: fault.error,
        })
    }

    fn note(&mut self, written: Result<(), WriteError>) {
        self.fault = self.fault.take().or(written.err());
    }
}

impl Watch for Recording {
    fn pass(&mut self, snapshot: &Snapshot, memory: Memory, plan: &Plan) {
        if self.fault.is_some() {
            return;
        }
        let written = self.writer.pass(Pass {
            snapshot: snapshot.clone(),
            basis: Basis::Memory(Box::new(memory)),
            restated: None,
            plan: plan.clone(),
            decided: Decided::Policy,
            names: BTreeMap::new(),
        });
        self.note(written.map(|_| ()));
    }

    fn settled(&mut self, job: &JobSnapshot, action: &Settled) {
        if let Some(ended) = Ended::by(job, action) {
            let written = self.writer.ended(ended);
            self.note(written);
        }
    }
}
