//! The division of capacity between namespaces in the last planning pass, for reconcilers and for people.

use std::sync::Arc;

use parking_lot::RwLock;
use shed_core::plan::TenantShare;

/// The shares of namespaces, in the order of their names; empty while they divide nothing.
#[derive(Default)]
pub struct ShareTable(RwLock<Arc<[TenantShare]>>);

impl ShareTable {
    /// Publishes the shares of a pass.
    pub fn publish(&self, shares: Vec<TenantShare>) {
        *self.0.write() = shares.into();
    }

    /// All shares.
    pub fn all(&self) -> Arc<[TenantShare]> {
        Arc::clone(&self.0.read())
    }

    /// Whether other namespaces hold a part of this one's share.
    pub fn is_lent(&self, namespace: &str) -> bool {
        let shares = self.0.read();
        let found = shares.binary_search_by(|share| (*share.tenant.0).cmp(namespace));
        found
            .ok()
            .and_then(|at| shares.get(at))
            .is_some_and(|share| share.owed > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::share;

    #[test]
    fn a_share_is_lent_while_a_part_of_it_is_owed() {
        let table = ShareTable::default();
        assert!(!table.is_lent("b"), "one namespace alone");
        table.publish(vec![share("a", 0.5, 0.5), share("b", 0.5, 0.2)]);
        let lent = ["a", "b", "c"].map(|namespace| table.is_lent(namespace));
        assert_eq!(lent, [false, true, false]);
        assert_eq!(table.all().len(), 2);
    }
}
