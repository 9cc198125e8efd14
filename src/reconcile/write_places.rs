//! How many writes of pods are under way at a time.

use std::sync::Arc;

use crate::fair_places::FairPlaces;
use crate::paced_places::PacedPlaces;

/// Writes of all jobs under way at once, shared by namespace: deletes and releases, and creations apart
/// from them, so that a webhook that is slow over one namespace's pods delays no other namespace's stop.
const STOPS_AT_ONCE: usize = 128;
const CREATIONS_AT_ONCE: usize = 128;
/// How many of these creations may be new.
const NEW_CREATIONS: usize = 32;

/// Places for writes of pods.
pub struct WritePlaces {
    pub(crate) stops: Arc<FairPlaces<Arc<str>>>,
    pub(crate) creations: PacedPlaces<Arc<str>>,
}

impl Default for WritePlaces {
    fn default() -> Self {
        Self {
            stops: FairPlaces::new(STOPS_AT_ONCE),
            creations: PacedPlaces::new(CREATIONS_AT_ONCE, NEW_CREATIONS),
        }
    }
}
