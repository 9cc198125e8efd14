//! Which tests run at the same time, and the restarts of the operator that several of them wait for.

use std::sync::LazyLock;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, watch};

use crate::scenario::World;

/// Whether other tests may run meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// All tests that do not run alone.
    Shared,
    /// Those tests, but few of them: many would change what this one counts, or take the slots that it needs.
    Few,
    /// Few tests. It restarts the operator, once each other test has come to its own restart or its end.
    Restarts,
    /// None: it fills the nodes, or changes nodes or the operator for longer than a restart.
    Alone,
    /// None, and the operator has this policy instead of the chart's.
    AloneUnder(&'static str),
}

/// Waiting for writers is fair, so a test that must be alone comes to its turn.
static COMPANY: RwLock<()> = RwLock::const_new(());
/// Tests that a restart would disturb read it. Its writer disturbs the operator.
static OPERATOR: RwLock<()> = RwLock::const_new(());
/// How often the leader was killed for all tests that waited for it.
static RESTARTS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

impl Company {
    /// Whether a test may leave the operator or a node otherwise than it was.
    pub(crate) fn disturbs(self) -> bool {
        !matches!(self, Self::Shared | Self::Few)
    }

    fn is_alone(self) -> bool {
        matches!(self, Self::Alone | Self::AloneUnder(_))
    }

    /// `SHED_E2E_COMPANY=shared`, `few` or `alone` selects the tests of one kind. In one run of all, each test that
    /// runs alone would wait for the last of the others.
    pub(crate) fn is_left_to_another_run(self) -> bool {
        match selected().as_str() {
            "" => false,
            "shared" => self != Self::Shared,
            "few" => !matches!(self, Self::Few | Self::Restarts),
            "alone" => !self.is_alone(),
            other => panic!(
                "SHED_E2E_COMPANY is {other}: set it to shared, few or alone, or leave it out"
            ),
        }
    }

    /// Waits for the test's turn.
    pub(crate) async fn turn(self) -> Turn {
        if self.is_alone() {
            return Turn::Alone(COMPANY.write().await);
        }
        Turn::Among(COMPANY.read().await)
    }

    /// The policy that the operator must have for this test: some, or the chart's. Absent if others run.
    pub(crate) fn policy(self) -> Option<Option<&'static str>> {
        match self {
            Self::AloneUnder(policy) => Some(Some(policy)),
            Self::Alone => Some(None),
            _ => None,
        }
    }

    /// Whether the chart's policy must be back at the test's end. Two tests of one policy in a row save two rollouts,
    /// where a test that runs alone follows.
    pub(crate) fn puts_policy_back(self) -> bool {
        matches!(self, Self::AloneUnder(_)) && selected() != "alone"
    }
}

fn selected() -> String {
    std::env::var("SHED_E2E_COMPANY").unwrap_or_default()
}

/// A test's turn. It lasts until this is dropped.
pub(crate) enum Turn {
    Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
    Among(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
}

/// Held by a test as long as a restart of the operator would disturb it.
pub(crate) struct Undisturbed(Mutex<Option<RwLockReadGuard<'static, ()>>>);

impl Undisturbed {
    /// Waits for the end of a restart.
    pub(crate) async fn begin() -> Self {
        Self(Mutex::new(Some(OPERATOR.read().await)))
    }

    /// Returns whether it had lasted until now.
    pub(crate) fn end(&self) -> bool {
        self.0.lock().take().is_some()
    }
}

/// A restart of the operator at which this test is ready, and others are. After it a test must expect more of them.
impl World {
    /// Kills the leader, and returns when another one leads. Tests that come to their first restart meanwhile share it.
    pub async fn restart_operator(&self) -> Result<()> {
        let before = *RESTARTS.borrow();
        let may_share = self.undisturbed.end();
        let mut restarts = RESTARTS.subscribe();
        let turn = tokio::select! {
            biased;
            _ = restarts.wait_for(|now| may_share && *now > before) => return Ok(()),
            turn = OPERATOR.write() => turn,
        };
        kill_the_leader(self, turn).await
    }

    /// The same, with preparations that wait until all others are ready.
    pub async fn restart_operator_after<T>(
        &self,
        prepare: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<T> {
        self.undisturbed.end();
        let turn = OPERATOR.write().await;
        let prepared = prepare().await?;
        kill_the_leader(self, turn).await?;
        Ok(prepared)
    }

    /// Disturbs the operator in a way that no other test waits for.
    pub async fn disturb_operator<T>(&self, act: impl AsyncFnOnce() -> Result<T>) -> Result<T> {
        self.undisturbed.end();
        let _turn = OPERATOR.write().await;
        act().await
    }
}

async fn kill_the_leader(world: &World, turn: RwLockWriteGuard<'static, ()>) -> Result<()> {
    world.operator.kill_and_await_takeover().await?;
    RESTARTS.send_modify(|restarts| *restarts += 1);
    drop(turn);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_disturbance_waits_for_each_test_that_it_would_disturb() {
        let (first, second) = (Undisturbed::begin().await, Undisturbed::begin().await);
        assert!(OPERATOR.try_write().is_err());
        assert!(first.end() && !first.end());
        assert!(OPERATOR.try_write().is_err());
        drop(second);
        assert!(OPERATOR.try_write().is_ok());
    }
}
