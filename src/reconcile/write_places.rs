//! How many jobs write their pods at a time.

use std::sync::Arc;

use crate::fair_places::{FairPlaces, Place};

/// Deletes and releases of all jobs under way at once, shared by namespace.
const STOPS_AT_ONCE: usize = 128;
/// Jobs that launch at once, shared by namespace: the only bound on creations. It is small because a small apiserver
/// that has many creations to answer closes watches whose events it can't send in time. A job that is served as a whole
/// also has pods that end together, so its status is written less often.
pub const LAUNCHES_AT_ONCE: usize = 16;

/// A job's turn to launch.
pub type LaunchPlace = Place<Arc<str>>;

/// Places for writes of pods.
pub struct WritePlaces {
    pub(crate) stops: Arc<FairPlaces<Arc<str>>>,
    pub(crate) launches: Arc<FairPlaces<Arc<str>>>,
}

impl Default for WritePlaces {
    fn default() -> Self {
        Self {
            stops: FairPlaces::new(STOPS_AT_ONCE),
            launches: FairPlaces::new(LAUNCHES_AT_ONCE),
        }
    }
}
