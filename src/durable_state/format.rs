//! The text of the stored state: JSON with a version and a field for each section.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shed_core::estimate::forecast::Calibration;
use shed_core::memory::Durable;
use shed_core::workflow::Workflows;

use crate::completion_history::StoredCompletions;
use crate::deadline_totals::StoredTotals;

/// The version of the format. A section that may be passed over needs no new version: an operator that does not know
/// it keeps it ([`Sections`]).
pub const VERSION: u64 = 1;

/// The text is not larger than this many bytes. A ConfigMap may have 1 MiB.
pub const TEXT_MAX: usize = 512 * 1024;

/// What the operator has learned from past jobs, and how many of them met their deadline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The planner's experience.
    pub planner: Durable,
    /// How right predicted PoCDs were.
    pub calibration: Calibration,
    /// Deadlines met, missed and failed. They are never dropped.
    #[serde(skip_serializing_if = "StoredTotals::is_empty")]
    pub totals: StoredTotals,
    /// Completion times by class.
    #[serde(skip_serializing_if = "StoredCompletions::is_empty")]
    pub completions: StoredCompletions,
    /// Runs of workflows by class.
    #[serde(skip_serializing_if = "Workflows::is_empty")]
    pub workflows: Workflows,
}

/// Sections that this version does not know.
pub type Sections = BTreeMap<String, Value>;

/// The text's content.
#[derive(Serialize, Deserialize)]
struct Content {
    version: u64,
    #[serde(flatten)]
    state: State,
    #[serde(flatten)]
    others: Sections,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

/// Why a text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A newer version of shed wrote it.
    #[error("it has version {0} of the format, and this version of shed reads version {VERSION}")]
    Newer(u64),
    /// It is not what shed writes.
    #[error("{0}")]
    Broken(String),
}

/// Reads a text.
pub fn decode(text: &str) -> Result<(State, Sections), Fault> {
    let size = text.len();
    let broken = |error: serde_json::Error| Fault::Broken(error.to_string());
    if size > TEXT_MAX {
        let message = format!("it has {size} bytes, more than {TEXT_MAX}");
        return Err(Fault::Broken(message));
    }
    let Version { version } = serde_json::from_str(text).map_err(broken)?;
    if version > VERSION {
        return Err(Fault::Newer(version));
    }
    if version == 0 {
        return Err(Fault::Broken("there is no version 0".to_owned()));
    }
    let content: Content = serde_json::from_str(text).map_err(broken)?;
    let state = content.state;
    let checked = state.planner.experience.check();
    checked.map_err(|invalid| Fault::Broken(invalid.to_string()))?;
    if !state.calibration.is_sound() {
        return Err(Fault::Broken("invalid value in `calibration`".to_owned()));
    }
    if !state.totals.is_sound() {
        return Err(Fault::Broken("invalid value in `totals`".to_owned()));
    }
    if !state.completions.is_sound() {
        return Err(Fault::Broken("invalid value in `completions`".to_owned()));
    }
    if !state.workflows.is_sound() {
        return Err(Fault::Broken("invalid value in `workflows`".to_owned()));
    }
    Ok((state, content.others))
}

impl State {
    /// Whether both hold the same, whenever that was.
    pub fn is_same(&self, other: &Self) -> bool {
        let (own, others) = (&self.planner.experience, &other.planner.experience);
        own == others
            && self.calibration == other.calibration
            && self.completions == other.completions
            && self.workflows == other.workflows
            && self.totals.is_same(&other.totals)
    }

    /// The number of its entries, without the totals.
    pub fn len(&self) -> usize {
        self.planner.experience.len()
            + self.calibration.len()
            + self.completions.len()
            + self.workflows.len()
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps this share of the entries of each kind; the oldest are dropped first.
    fn keep(&mut self, share: f64) {
        self.planner.experience.keep(share);
        self.calibration.keep(share);
        self.completions.keep(share);
        self.workflows.keep(share);
    }
}

/// The text of at most [`TEXT_MAX`] bytes, and the number of entries that had to be dropped for that.
pub fn encode(state: State, others: Sections) -> serde_json::Result<(String, usize)> {
    let before = state.len();
    let mut content = Content {
        version: VERSION,
        state,
        others,
    };
    loop {
        let text = serde_json::to_string(&content)?;
        if text.len() <= TEXT_MAX {
            return Ok((text, before - content.state.len()));
        }
        if content.state.is_empty() {
            content.others.clear();
        }
        // A little less than the share that fits, because entries differ in size.
        let share = 0.95 * TEXT_MAX as f64 / text.len() as f64;
        content.state.keep(share);
    }
}
