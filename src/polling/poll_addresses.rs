//! Where attempts may be polled. The kubelet of a pod's node reports the pod's address, and the
//! user chooses port and path. Without a check of the address, a user could make the operator send
//! requests to itself, to a node's own services or to a cloud's metadata service.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use crate::cluster::Stores;
use crate::cluster::pod::PodFacts;

/// Where attempts may be polled.
#[derive(Clone)]
pub struct PollAddresses {
    stores: Arc<Stores>,
    /// Tests with fake pods answer on this machine.
    loopback: bool,
}

impl PollAddresses {
    /// For these pods; at loopback addresses only if `loopback` is set.
    pub fn new(stores: Arc<Stores>, loopback: bool) -> Self {
        Self { stores, loopback }
    }

    /// The watched world.
    pub fn stores(&self) -> &Arc<Stores> {
        &self.stores
    }

    /// The address of an attempt's pod, if it may be polled there.
    pub fn address(&self, pod: &PodFacts) -> Option<IpAddr> {
        let text = pod.attempt.as_ref()?.ip.as_deref()?;
        let address = text.parse::<IpAddr>().ok()?.to_canonical();
        let is_pods = if address.is_loopback() {
            self.loopback
        } else {
            may_be_a_pods(address) && !self.stores.nodes.is_address(address)
        };
        is_pods.then_some(address)
    }
}

/// Whether pods can have such an address.
fn may_be_a_pods(address: IpAddr) -> bool {
    let is_special = match address {
        IpAddr::V4(v4) => {
            // All of 0.0.0.0/8 is "this host".
            let is_this_host = v4.octets()[0] == 0;
            is_this_host || v4.is_link_local() || v4 == Ipv4Addr::BROADCAST
        }
        IpAddr::V6(v6) => v6.is_unspecified() || v6.is_unicast_link_local(),
    };
    !is_special && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;
    use shed_core::time::Instant;

    use super::*;
    use crate::fixtures;

    fn attempt(ip: &str) -> PodFacts {
        let mut pod = fixtures::attempt_pod(&fixtures::job(""), (0, 0), "n1", "Running");
        pod.status.get_or_insert_default().pod_ip = Some(ip.to_owned());
        PodFacts::from_pod(&pod.into(), Instant(0))
    }

    fn addresses(loopback: bool) -> PollAddresses {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n1"},
            "status": {"addresses": [
                {"type": "InternalIP", "address": "10.0.0.5"},
                {"type": "InternalIP", "address": "fd00::5"},
                {"type": "Hostname", "address": "n1"},
            ]},
        }))
        .unwrap();
        PollAddresses::new(Stores::for_tests(vec![], vec![], &[node]), loopback)
    }

    #[test]
    fn pods_are_asked_where_pods_are() {
        let addresses = addresses(false);
        for ip in [
            "10.1.2.3",
            "100.64.0.7",
            "192.168.3.4",
            "fd00::6",
            "2001:db8::1",
        ] {
            let asked = addresses.address(&attempt(ip));
            assert_eq!(asked, Some(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn nobody_is_asked_where_no_pod_is() {
        let addresses = addresses(false);
        for ip in [
            "127.0.0.1",
            "127.77.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fe80::1",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "10.0.0.5",
            "::ffff:10.0.0.5",
            "fd00::5",
            "metadata.internal",
            "10.1.2.3:80",
        ] {
            assert_eq!(addresses.address(&attempt(ip)), None, "{ip}");
        }
    }

    #[test]
    fn only_tests_ask_on_this_machine() {
        let loopback = attempt("127.77.0.1");
        assert!(addresses(true).address(&loopback).is_some());
        for ip in ["169.254.169.254", "10.0.0.5", "0.0.0.0"] {
            assert_eq!(addresses(true).address(&attempt(ip)), None, "{ip}");
        }
    }
}
