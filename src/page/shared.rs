//! Answers that open pages share. An answer depends on the visible namespaces and on nothing else of the visitor.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::answers::{Refusal, Scope};

/// An answer, for as long as a page holds it.
struct Kept {
    scope: Scope,
    made: Instant,
    body: Weak<Vec<u8>>,
}

/// The latest answers to one question, by the visible namespaces.
pub(super) struct Shared {
    life: Duration,
    kept: Mutex<Vec<Kept>>,
}

impl Shared {
    /// Answers are used again for this long.
    pub(super) fn new(life: Duration) -> Self {
        Self {
            life,
            kept: Mutex::default(),
        }
    }

    /// The answer for these namespaces: a recent one, or a new one. One is made at a time.
    pub(super) async fn get(
        &self,
        scope: &Scope,
        patience: Duration,
        make: impl Future<Output = Result<Vec<u8>, Refusal>>,
    ) -> Result<Arc<Vec<u8>>, Refusal> {
        let kept = timeout(patience, self.kept.lock()).await;
        let mut kept = kept.map_err(|_| Refusal::busy("too many pages wait: try again later"))?;
        kept.retain(|one| one.made.elapsed() < self.life && one.body.strong_count() > 0);
        let recent = kept.iter().find(|one| one.scope == *scope);
        if let Some(body) = recent.and_then(|one| one.body.upgrade()) {
            return Ok(body);
        }
        let body = Arc::new(make.await?);
        kept.push(Kept {
            scope: scope.clone(),
            made: Instant::now(),
            body: Arc::downgrade(&body),
        });
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pages_that_see_the_same_share_an_answer_for_a_while() {
        let shared = Shared::new(Duration::from_secs(2));
        let made = Cell::new(0_u8);
        let get = async |scope: &Scope| {
            let make = async {
                made.set(made.get() + 1);
                Ok(vec![made.get()])
            };
            shared.get(scope, Duration::ZERO, make).await.unwrap()
        };
        let some = |name: &str| Scope::Namespaces([Arc::from(name)].into());
        let all = get(&Scope::All).await;
        assert_eq!(**get(&Scope::All).await, [1]);
        let team = get(&some("team")).await;
        assert_eq!(
            (&**team, &**get(&some("other")).await),
            (&[2][..], &[3][..])
        );
        // No page holds the last one any more.
        assert_eq!(**get(&some("other")).await, [4]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(**get(&Scope::All).await, [5]);
        drop((all, team));
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_does_not_wait_long_for_the_answers_of_others() {
        let shared = Shared::new(Duration::from_secs(2));
        let stuck = shared.get(&Scope::All, Duration::ZERO, std::future::pending());
        let other = async {
            let begun = Instant::now();
            let make = async { Ok(Vec::new()) };
            let refused = shared.get(&Scope::All, Duration::from_secs(3), make).await;
            assert!(refused.is_err());
            begun.elapsed()
        };
        tokio::select! {
            biased;
            _ = stuck => panic!("it pends"),
            waited = other => assert_eq!(waited, Duration::from_secs(3)),
        }
    }
}
