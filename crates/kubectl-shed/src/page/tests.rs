//! The guard of the page. What the page shows is tested with the program itself (`tests/verbs/live_page.rs`).

use super::*;

#[test]
fn each_start_has_another_secret() {
    let (first, second) = (secret().unwrap(), secret().unwrap());
    assert_eq!(first.len(), 32);
    assert_ne!(first, second);
}
