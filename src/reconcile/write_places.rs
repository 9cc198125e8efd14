//! How many writes of pods are under way at a time.

use std::sync::Arc;

use crate::fair_places::FairPlaces;

/// Writes of all jobs under way at once, shared by namespace: deletes and releases, and creations apart
/// from them, so that a webhook that is slow over one namespace's pods delays no other namespace's stop.
const STOPS_AT_ONCE: usize = 128;
const CREATIONS_AT_ONCE: usize = 128;
/// Places for writes of pods.
pub struct WritePlaces {
    pub(crate) stops: Arc<FairPlaces<Arc<str>>>,
    pub(crate) creations: Arc<FairPlaces<Arc<str>>>,
}

impl Default for WritePlaces {
    fn default() -> Self {
        Self {
            stops: FairPlaces::new(STOPS_AT_ONCE),
            creations: FairPlaces::new(CREATIONS_AT_ONCE),
        }
    }
}
