//! Bounds how often each client may cause work at the apiserver.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use shed_core::time::{Instant, Span};

use crate::token_bucket::TokenBucket;

/// Tokens from one address that the apiserver must review: this number at once, then one per period.
const TOKENS_BURST: u32 = 10;
const TOKENS_PERIOD: Span = Span::from_seconds(2);

/// Clients that are distinguished. Others are refused until one of these has been quiet.
const CLIENTS_MAX: usize = 1024;

/// A burst for each client, then one per period. Everyone who can connect may send tokens, and each one costs the
/// apiserver a review.
#[derive(Default)]
pub struct Quota {
    clients: Mutex<HashMap<IpAddr, TokenBucket>>,
}

impl Quota {
    /// Whether the client may do one more. `now` is of the process's own clock.
    pub fn admit(&self, client: IpAddr, now: Instant) -> bool {
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(&client) {
            clients.retain(|_, bucket| !bucket.is_full(now));
            if clients.len() >= CLIENTS_MAX {
                return false;
            }
        }
        let bucket = clients.entry(client);
        let bucket = bucket.or_insert_with(|| TokenBucket::new(TOKENS_BURST, TOKENS_PERIOD));
        bucket.take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_quota_and_their_number_is_bounded() {
        let quota = Quota::default();
        let (start, later) = (Instant(0), Instant(60_000));
        let address = |client: usize| IpAddr::from((client as u128).to_be_bytes());
        let admitted = |client, at| (0..20).filter(|_| quota.admit(address(client), at)).count();
        assert_eq!((admitted(1, start), admitted(2, start)), (10, 10));
        for client in 3..=CLIENTS_MAX {
            assert!(quota.admit(address(client), start));
        }
        assert!(!quota.admit(address(CLIENTS_MAX + 1), start));
        // Those who were quiet are forgotten for it.
        assert_eq!(admitted(CLIENTS_MAX + 1, later), 10);
        assert_eq!(admitted(1, later), 10);
    }
}
