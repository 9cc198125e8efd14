//! The live page of this process, if it is enabled.

use std::sync::Arc;

use kube::Client;
use kube::client::ClientBuilder;

use super::Setup;
use crate::lease::write_gate::{Fence, FenceLayer};
use crate::page::{self, LeaderLabel};

/// Serves the page, also while another replica leads.
pub(super) fn start(setup: &Setup) -> anyhow::Result<()> {
    let Some(address) = setup.args.page_address else {
        return Ok(());
    };
    let source = page::Source {
        standing: Arc::clone(&setup.standing),
        term: Arc::clone(&setup.term),
        clock: Arc::clone(&setup.clock),
        client: Client::try_from(setup.config.clone())?,
    };
    let certificates = setup.args.page_cert_dir.clone();
    setup.work.spawn(async move {
        page::run(address, certificates.as_deref(), source).await;
    });
    Ok(())
}

/// The label of the leader's pod in one term. Its writes pass the gate of the term.
pub(super) fn label(setup: &Setup, fence: &Arc<Fence>) -> anyhow::Result<Option<LeaderLabel>> {
    let pod = setup.args.pod_name.clone();
    let pod = pod.filter(|_| setup.args.page_address.is_some());
    let Some(pod) = pod else {
        return Ok(None);
    };
    let client = ClientBuilder::try_from(setup.config.clone())?;
    let client = client.with_layer(&FenceLayer(Arc::clone(fence))).build();
    Ok(Some(LeaderLabel::new(client, pod)))
}
