//! Bounds how often each client may cause work at the apiserver.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use shed_core::time::{Instant, Span};

use crate::token_bucket::TokenBucket;

/// Tokens from one address that the apiserver must review: this number at once, then one per period.
const TOKENS_BURST: u32 = 10;
const TOKENS_PERIOD: Span = Span::from_seconds(2);

/// Clients that are told apart. Others are refused until one of these has been quiet.
const CLIENTS_MAX: usize = 1024;

/// A burst for each client, then one per period.
pub struct Quota<K> {
    burst: u32,
    period: Span,
    clients: Mutex<HashMap<K, TokenBucket>>,
}

impl<K: Eq + Hash> Quota<K> {
    /// A quota that no client has used.
    pub fn new(burst: u32, period: Span) -> Self {
        Self {
            burst,
            period,
            clients: Mutex::default(),
        }
    }

    /// Whether the client may do one more. `now` is of the process's own clock.
    pub fn admit(&self, client: K, now: Instant) -> bool {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(&client) {
            clients.retain(|_, bucket| !bucket.is_full(now));
            if clients.len() >= CLIENTS_MAX {
                return false;
            }
        }
        let bucket = clients.entry(client);
        let bucket = bucket.or_insert_with(|| TokenBucket::new(self.burst, self.period));
        bucket.take(now)
    }
}

/// Reviews of tokens, by address. Everyone who can connect may send tokens, and each one costs the apiserver a review.
pub fn tokens() -> Quota<IpAddr> {
    Quota::new(TOKENS_BURST, TOKENS_PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_quota_and_their_number_is_bounded() {
        let quota = Quota::new(2, Span(1000));
        let start = Instant(0);
        let admitted = |client: usize, at| (0..5).filter(|_| quota.admit(client, at)).count();
        assert_eq!((admitted(1, start), admitted(2, start)), (2, 2));
        for client in 3..=CLIENTS_MAX {
            assert!(quota.admit(client, start));
        }
        assert!(!quota.admit(CLIENTS_MAX + 1, start));
        // Those who were quiet are forgotten for it.
        assert_eq!(admitted(CLIENTS_MAX + 1, Instant(5000)), 2);
        assert_eq!(admitted(1, Instant(5000)), 2);
    }
}
