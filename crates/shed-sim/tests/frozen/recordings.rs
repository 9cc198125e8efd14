//! Archived recordings: each pass must still be decided as recorded.
//!
//! Each was written once, and does not change when the schema changes, so that old recordings stay readable:
//! `shed-sim run --trace 'setup:A{jobs=4}' --slots 24 --load 1.1 --deadline-factor 1.5 --launch-overhead 5%
//! --first-report 5% --report-every 10% --report-noise 0.05 --resume offset --on-miss fail --seed 1 --policy POLICY
//! --record FOLDER`.

use std::collections::BTreeMap;
use std::path::Path;

use shed_core::policy::Policy;
use shed_sim::replay::replay;

use crate::table;

#[test]
fn kept_recordings_are_decided_as_recorded() {
    shed_sim::policies::install(shed_papers::registry());
    let mut made = BTreeMap::new();
    for policy in ["shed-prime", "shed-plus", "hadoop-ns"] {
        let file = format!("tests/frozen/{policy}.jsonl.gz");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let found = replay(&file, Policy::clone).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.passes > 40, "{policy}: {} passes", found.passes);
        assert_eq!(
            found.first_difference, None,
            "{policy} is decided otherwise"
        );
        assert_eq!((found.equal, found.lost), (found.passes, 0), "{policy}");
        let bytes = std::fs::read(&file).expect("a kept recording");
        made.insert(format!("recording {policy}"), table::digest(&bytes));
    }
    table::assert_frozen(&made);
}
