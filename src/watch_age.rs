//! How long ago the apiserver answered each watch. It ends every watch within a minute, and shed starts it again, so
//! that a healthy watch is young although nothing happens.

use std::collections::BTreeMap;

use http::Uri;
use parking_lot::Mutex;
use tokio::time::Instant;

/// When the apiserver last answered the watch of each resource.
#[derive(Default)]
pub struct WatchAges(Mutex<BTreeMap<String, Instant>>);

impl WatchAges {
    /// Seconds since the last answer, by resource.
    pub fn seconds(&self) -> Vec<(String, f64)> {
        let now = Instant::now();
        let age = |at: &Instant| now.duration_since(*at).as_secs_f64();
        let watches = self.0.lock();
        let ages = watches.iter();
        ages.map(|(resource, at)| (resource.clone(), age(at)))
            .collect()
    }

    /// Watches of these resources begin. Without an answer they age from now on.
    pub fn begin(&self, resources: &[&str]) {
        for resource in resources {
            self.answered((*resource).to_owned());
        }
    }

    /// Another replica watches now.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// The apiserver answered the watch of a resource.
    pub fn answered(&self, resource: String) {
        self.0.lock().insert(resource, Instant::now());
    }
}

/// The resource that a request watches.
pub fn watched(uri: &Uri) -> Option<String> {
    let mut parameters = uri.query()?.split('&');
    let is_watch = parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1"));
    let resource = uri.path().rsplit('/').next()?;
    is_watch.then(|| resource.to_owned())
}
