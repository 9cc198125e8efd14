//! How long the last completed jobs of a namespace took, by class.

use serde::Serialize;
use shed_core::time::Span;

use crate::answers::Refusal;
use crate::answers::query::{Query, decoded};
use crate::completion_history::ClassFigures;
use crate::context::Context;

#[derive(Debug, Serialize)]
pub(super) struct List {
    classes: Vec<ClassSummary>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClassSummary {
    class: String,
    runs: usize,
    p50_seconds: i64,
    p90_seconds: i64,
    p95_seconds: i64,
    p99_seconds: i64,
    max_seconds: i64,
}

/// The namespace that is wanted, and the class if only one is.
pub(super) fn wanted(
    namespace: &str,
    mut query: Query,
) -> Result<(String, Option<String>), Refusal> {
    let class = query.take("class");
    query.none_left(&["class"])?;
    Ok((decoded(namespace)?, class))
}

/// The classes of the namespace with a completion; none for a namespace without any.
pub(super) fn list(context: &Context, namespace: &str, class: Option<&str>) -> List {
    let completions = context.stores.completions();
    let classes = completions.figures(namespace, class).into_iter();
    List {
        classes: classes.map(ClassSummary::from).collect(),
    }
}

impl From<ClassFigures> for ClassSummary {
    fn from(figures: ClassFigures) -> Self {
        let [p50, p90, p95, p99, max] = figures.quantiles.map(whole_seconds);
        Self {
            class: figures.class,
            runs: figures.runs,
            p50_seconds: p50,
            p90_seconds: p90,
            p95_seconds: p95,
            p99_seconds: p99,
            max_seconds: max,
        }
    }
}

/// Rounded up, so that a deadline of that length would have been met.
fn whole_seconds(span: Span) -> i64 {
    span.0.saturating_add(999).div_euclid(1000)
}
