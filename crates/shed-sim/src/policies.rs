//! The policies that can be named: those of the product, and those that the program adds.

use std::sync::OnceLock;

use shed_core::policy::Registry;

static KNOWN: OnceLock<Registry> = OnceLock::new();

/// Sets the policies that can be named, once, before the first use.
pub fn install(policies: Registry) {
    // A second program in one process could only add the same ones.
    let _ = KNOWN.set(policies);
}

/// The policies that can be named.
pub fn known() -> Registry {
    KNOWN.get().cloned().unwrap_or_default()
}
