//! The division of capacity between namespaces, as fractions of what attempts may use.

use std::cmp::Reverse;

use prometheus::IntGauge;
use shed_core::plan::TenantShare;

use super::namespaces::{OTHER, OWN_MAX};
use crate::registrar::{Gauges, metrics};

metrics! {
    /// The division of capacity between namespaces.
    pub struct ShareMetrics {
        entitled: Gauges<1> = "shed_share_entitled",
            "Share of the usable capacity that the namespace is entitled to: weighted max-min over demand", ["job_namespace"];
        held: Gauges<1> = "shed_share_held",
            "Share of the usable capacity that attempts of the namespace hold, clones and stopping ones included", ["job_namespace"];
        lent: Gauges<1> = "shed_share_lent",
            "Part of the held share beyond the entitled one: others lend it", ["job_namespace"];
        owed: Gauges<1> = "shed_share_owed",
            "Part of the entitled share that tasks of the namespace wait for while others hold it", ["job_namespace"];
        pub settings_unreadable: IntGauge = "shed_namespace_settings_unreadable",
            "1 while the leader may not read the labels and annotations of all namespaces: they have equal shares then, and no limits of their own";
    }
}

impl ShareMetrics {
    /// Shows the shares of a pass. The namespaces that are owed most have series of their own, then those that hold most;
    /// one series has the sums of all others.
    pub fn show(&self, shares: &[TenantShare]) {
        self.clear();
        let mut ranked: Vec<&TenantShare> = shares.iter().collect();
        if ranked.len() > OWN_MAX {
            let size = |share: f64| Reverse((share * 1e9) as u64);
            ranked.sort_by_key(|share| (size(share.owed), size(share.held), &share.tenant));
        }
        for (at, share) in ranked.into_iter().enumerate() {
            let namespace = match at < OWN_MAX {
                true => &*share.tenant.0,
                false => OTHER,
            };
            for (gauge, value) in [
                (&self.entitled, share.entitled),
                (&self.held, share.held),
                (&self.lent, share.lent),
                (&self.owed, share.owed),
            ] {
                gauge.with([namespace]).add(value);
            }
        }
    }

    /// Shows no shares: another replica shows them now.
    pub fn forget(&self) {
        self.clear();
        self.settings_unreadable.set(0);
    }

    fn clear(&self) {
        for gauge in [&self.entitled, &self.held, &self.lent, &self.owed] {
            gauge.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::share;
    use crate::metrics::Metrics;

    #[test]
    fn each_namespace_has_its_shares_and_none_after_its_jobs() {
        let metrics = Metrics::new().unwrap();
        metrics
            .shares
            .show(&[share("a", 0.25, 0.75), share("b", 0.75, 0.25)]);
        let page = metrics.page().unwrap();
        for line in [
            r#"shed_share_entitled{job_namespace="a"} 0.25"#,
            r#"shed_share_held{job_namespace="a"} 0.75"#,
            r#"shed_share_lent{job_namespace="a"} 0.5"#,
            r#"shed_share_owed{job_namespace="a"} 0"#,
            r#"shed_share_owed{job_namespace="b"} 0.5"#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        metrics.shares.show(&[]);
        assert!(!metrics.page().unwrap().contains("shed_share_"));
    }

    #[test]
    fn a_flood_of_namespaces_hides_none_that_is_owed_a_share() {
        let metrics = Metrics::new().unwrap();
        let flood = (0..OWN_MAX + 9).map(|at| share(&format!("n-{at:04}"), 0.5, 0.5));
        let shares: Vec<TenantShare> = flood.chain([share("victim", 0.5, 0.25)]).collect();
        metrics.shares.show(&shares);
        let page = metrics.page().unwrap();
        assert!(page.contains(r#"shed_share_owed{job_namespace="victim"} 0.25"#));
        assert!(page.contains(r#"shed_share_held{job_namespace="other"} 5"#));
        let series = page.matches("shed_share_held{").count();
        assert_eq!(series, OWN_MAX + 1);
    }
}
