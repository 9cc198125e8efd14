//! Instants of the ledger, which it writes as timestamps with milliseconds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shed_core::time::Instant;

use crate::clock::{micro_instant, micro_time};

/// For `#[serde(with)]`.
pub(super) fn serialize<S: Serializer>(at: &Instant, to: S) -> Result<S::Ok, S::Error> {
    micro_time(*at).serialize(to)
}

/// For `#[serde(with)]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
    MicroTime::deserialize(from).map(|at| micro_instant(&at))
}

/// Instants that may be absent.
pub(super) mod option {
    use super::{
        Deserialize, Deserializer, Instant, MicroTime, Serialize, Serializer, micro_instant,
        micro_time,
    };

    pub(in super::super) fn serialize<S: Serializer>(
        at: &Option<Instant>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(micro_time).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Instant>, D::Error> {
        let at = Option::<MicroTime>::deserialize(from)?;
        Ok(at.as_ref().map(micro_instant))
    }
}
