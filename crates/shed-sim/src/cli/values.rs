//! Values of flags.

use std::ops::RangeInclusive;
use std::str::FromStr;

use shed_core::policy::Order;
use shed_core::snapshot::{OnMiss, Preemption};
use shed_core::time::Span;

use crate::policies;
use crate::settings::{Delay, Resuming};

/// A policy with its parameters, as text; its order depends on another flag.
pub(super) fn policy(text: &str) -> Result<String, String> {
    let parsed = policies::known().parse(text, Order::default());
    parsed
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Seconds from 0 on.
pub fn seconds(text: &str) -> Result<Span, String> {
    positive(text, 1e9).map(Span::from_seconds_f64)
}

/// Seconds such as `3` or `0.5`, or a share of the job's median task time such as `5%`.
pub(super) fn delay(text: &str) -> Result<Delay, String> {
    match text.strip_suffix('%') {
        Some(percent) => positive(percent, 1000.0).map(|percent| Delay::OfMedian(percent / 100.0)),
        None => seconds(text).map(Delay::Fixed),
    }
    .map_err(|_| format!("`{text}` is neither seconds (`3`) nor a share of the median (`5%`)"))
}

fn positive(text: &str, most: f64) -> Result<f64, String> {
    let number = f64::from_str(text).ok();
    number
        .filter(|number| (0.0..=most).contains(number))
        .ok_or_else(|| format!("`{text}` is not a number from 0 to {most}"))
}

/// A number above 0.
pub fn above_zero(text: &str) -> Result<f64, String> {
    let number = f64::from_str(text).ok();
    number
        .filter(|number| *number > 0.0 && *number <= 1e6)
        .ok_or_else(|| format!("`{text}` is not a number above 0 and at most 1000000"))
}

/// A number above 0 and at most 1.
pub fn share(text: &str) -> Result<f64, String> {
    let number = f64::from_str(text).ok();
    number
        .filter(|number| *number > 0.0 && *number <= 1.0)
        .ok_or_else(|| format!("`{text}` is not a number above 0 and at most 1"))
}

/// A number from 0 to 1.
pub(super) fn unit(text: &str) -> Result<f64, String> {
    positive(text, 1.0)
}

/// Where clones and retries begin.
pub(super) fn resuming(text: &str) -> Result<Resuming, String> {
    match text.split_once(':') {
        None if text == "scratch" => Ok(Resuming::Scratch),
        None if text == "offset" => Ok(Resuming::Offset),
        None if text == "latest" => Ok(Resuming::Latest),
        Some(("checkpoint", every)) => match seconds(every) {
            Ok(every) if every > Span(0) => Ok(Resuming::Checkpoint(every)),
            _ => Err(format!("`{every}` is not a number of seconds above 0")),
        },
        _ => Err(format!(
            "`{text}` is not one of scratch, offset, latest, checkpoint:SECONDS"
        )),
    }
}

/// The treatment of attempts at the deadline.
pub(super) fn on_miss(text: &str) -> Result<OnMiss, String> {
    match text {
        "continue" => Ok(OnMiss::Continue),
        "fail" => Ok(OnMiss::Fail),
        _ => Err(format!("`{text}` is neither continue nor fail")),
    }
}

/// Whether running first attempts may be preempted.
pub(super) fn preemption(text: &str) -> Result<Preemption, String> {
    match text {
        "never" => Ok(Preemption::Never),
        "when-checkpointed" => Ok(Preemption::WhenCheckpointed),
        _ => Err(format!("`{text}` is neither never nor when-checkpointed")),
    }
}

/// A whole number from 1 on.
pub fn count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is not a whole number above 0"))
}

/// `LOW..HIGH`, both included.
pub(super) fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let bounds = text.split_once("..").and_then(|(low, high)| {
        let (low, high) = (low.parse().ok()?, high.parse().ok()?);
        (low <= high).then_some(low..=high)
    });
    bounds.ok_or_else(|| format!("`{text}` is not LOW..HIGH in whole numbers, such as 3..150"))
}
