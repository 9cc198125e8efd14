//! Each right of the operator was used in this run, or is listed with a reason; nothing that it
//! asked for was denied. run.sh runs this after all other tests.

use anyhow::ensure;
use shed_e2e::rights::compare;
use shed_e2e::scenario::{Company, Needs, scenario};

#[tokio::test]
async fn the_operator_may_do_what_it_did_and_little_else() {
    scenario(Needs::OperatorPod, Company::Shared, async |world| {
        let client = world.cluster.client();
        let found = compare(client, world.cluster.kubeconfig()).await?;
        for (right, count) in &found.used {
            eprintln!("{count:>7}  {right}");
        }
        ensure!(found.denied.is_empty(), "denied: {:#?}", found.denied);
        ensure!(
            found.superfluous.is_empty(),
            "granted and not used, nor listed in e2e/src/rights.rs: {:#?}",
            found.superfluous
        );
        ensure!(
            found.stale.is_empty(),
            "listed in e2e/src/rights.rs and not granted: {:#?}",
            found.stale
        );
        Ok(())
    })
    .await;
}
