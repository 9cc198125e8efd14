//! Events of the cluster, as the page and the support bundle show them.

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

/// An event in a few fields.
#[derive(Debug, Clone, Serialize)]
pub struct EventView {
    pub time: Option<Time>,
    r#type: String,
    reason: String,
    message: String,
    count: i32,
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        let series = event.series.unwrap_or_default();
        let last = series.last_observed_time.or(event.event_time);
        let count = series.count.or(event.count);
        Self {
            time: event.last_timestamp.or(last.map(|time| Time(time.0))),
            r#type: event.type_.unwrap_or_default(),
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            count: count.unwrap_or(1),
        }
    }
}
