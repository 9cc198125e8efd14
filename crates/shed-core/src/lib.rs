//! Pure scheduling core.
