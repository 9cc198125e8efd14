//! How attempts are polled for progress, and the features that require polls.

use std::sync::Arc;

use shed_core::snapshot::{Idempotency, SpeculationMode};
use shed_core::time::Span;

use super::{InvalidSpec, within};
use crate::api::{self, DeadlineJobSpec};

/// How attempts are polled for progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressRule {
    /// Endpoint to poll.
    pub source: ProgressSource,
    /// Minimum time between two polls.
    pub period: Span,
    /// Maximum time between two polls while the attempt answers.
    pub period_max: Span,
    /// Whether no clone is ever launched because of an attempt's progress.
    pub never_cloned: bool,
}

/// Endpoint to poll for progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgressSource {
    /// The sidecar, which serves the file that the task writes.
    Agent,
    /// The task itself.
    Task {
        /// Its port.
        port: u16,
        /// Its path.
        path: Arc<str>,
    },
    /// The task's page of metrics.
    Metric {
        /// Its port.
        port: u16,
        /// Its path.
        path: Arc<str>,
        /// Metric with the progress.
        name: Arc<str>,
        /// Metric with the total.
        total: Option<Arc<str>>,
    },
}

pub(super) fn range(spec: &DeadlineJobSpec) -> Result<(), InvalidSpec> {
    if spec.resume != api::Resume::Range {
        return Ok(());
    }
    if spec.idempotency != Idempotency::Safe {
        return Err(InvalidSpec::RangeIdempotency);
    }
    let source = spec.progress.as_ref();
    match source.is_some_and(|source| source.file.is_some()) {
        true => Ok(()),
        false => Err(InvalidSpec::RangeProgress),
    }
}

/// A task that requests a grant before it publishes asks the agent.
pub(super) fn fenced(spec: &DeadlineJobSpec) -> Result<Idempotency, InvalidSpec> {
    let source = progress_rule(spec)?.map(|rule| rule.source);
    match source {
        Some(ProgressSource::Agent) => Ok(Idempotency::Fenced),
        Some(ProgressSource::Task { .. } | ProgressSource::Metric { .. }) | None => {
            Err(InvalidSpec::FenceWithoutAgent)
        }
    }
}

/// How attempts of this specification are polled for progress; absent: not at all.
pub fn progress_rule(spec: &DeadlineJobSpec) -> Result<Option<ProgressRule>, InvalidSpec> {
    let pod = spec.template.spec.as_ref();
    let is_on_host = pod.is_some_and(|pod| pod.host_network == Some(true));
    match &spec.progress {
        Some(_) if is_on_host => Err(InvalidSpec::ProgressOnHost),
        Some(source) => progress(spec, source).map(Some),
        None => Ok(None),
    }
}

/// The period may be stretched so often where a newer value could change little.
fn stretch_max(resume: api::Resume) -> i64 {
    match resume {
        api::Resume::None => 8,
        // A clone begins at the last reported checkpoint.
        api::Resume::Checkpoint => 2,
        // The end of a segment is negotiated from the last report.
        api::Resume::Range => 1,
    }
}

fn progress(
    spec: &DeadlineJobSpec,
    source: &api::ProgressSource,
) -> Result<ProgressRule, InvalidSpec> {
    let period = within("progress.periodSeconds", source.period_seconds, 1, 3600)?;
    let period = i64::from(period);
    let source = match (&source.file, &source.http_get, &source.metric) {
        (Some(_), None, None) => ProgressSource::Agent,
        (None, Some(http), None) => ProgressSource::Task {
            port: port("progress.httpGet.port", http.port)?,
            path: path("progress.httpGet.path", &http.path)?,
        },
        (None, None, Some(metric)) => ProgressSource::Metric {
            port: port("progress.metric.port", metric.port)?,
            path: path("progress.metric.path", &metric.path)?,
            name: metric.name.as_str().into(),
            total: metric.total.as_deref().map(Arc::from),
        },
        _ => return Err(InvalidSpec::Progress),
    };
    Ok(ProgressRule {
        source,
        period: Span::from_seconds(period),
        period_max: Span::from_seconds(period * stretch_max(spec.resume)),
        never_cloned: spec.speculation.mode == SpeculationMode::Disabled
            || spec.idempotency == Idempotency::None,
    })
}

/// The schema requires the same, unless an older one is installed.
fn path(field: &'static str, path: &str) -> Result<Arc<str>, InvalidSpec> {
    let is_path = path.starts_with('/') && !path.contains(char::is_whitespace);
    match is_path {
        true => Ok(path.into()),
        false => Err(InvalidSpec::ProgressPath { field }),
    }
}

fn port(field: &'static str, port: i32) -> Result<u16, InvalidSpec> {
    u16::try_from(within(field, port, 1, 65_535)?).map_err(|_| InvalidSpec::Progress)
}
