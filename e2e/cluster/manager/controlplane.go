package main

import (
	"fmt"
	"strconv"
)

func (c *config) etcd(kube string) component {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.Ports["etcd"])
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.Ports["etcd-peer"])
	return component{
		name: "etcd",
		args: []string{kube, "etcd",
			"--name=etcd", "--data-dir=" + c.path("etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=etcd=" + peer,
			// The data does not outlive the cluster, so it need not survive a
			// power cut either; waiting for the disk is what makes etcd slow.
			"--unsafe-no-fsync",
			"--auto-compaction-mode=periodic", "--auto-compaction-retention=5m",
			"--quota-backend-bytes=4294967296",
			"--log-level=warn",
		},
		health: client + "/health",
		port:   c.Ports["etcd"],
	}
}

func (c *config) apiserver(kube string) component {
	args := []string{kube, "kube-apiserver",
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.Ports["etcd"]),
		"--bind-address=" + c.apiAddress(),
		"--secure-port=" + strconv.Itoa(c.Ports["kube-apiserver"]),
		"--service-cluster-ip-range=" + c.serviceSubnet(),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + c.pki("ca.crt"),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("service-account.pub"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--kubelet-certificate-authority=" + c.pki("ca.crt"),
		"--kubelet-client-certificate=" + c.pki("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + c.pki("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + c.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + c.pki("front-proxy.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy.key"),
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.path("audit.log"),
		"--audit-log-maxsize=200", "--audit-log-maxbackup=2",
		"--profiling=false",
	}
	if c.Mode == modeReal {
		args = append(args, "--advertise-address="+c.hostIP())
	} else {
		// Nothing runs in fake pods, so no client uses the kubernetes service;
		// a loopback address would not be accepted as its endpoint.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	return component{
		name: "kube-apiserver", args: args,
		health: c.apiURL() + "/readyz", port: c.Ports["kube-apiserver"],
	}
}

// controlLoop is what the controller-manager and the scheduler have in common.
func (c *config) controlLoop(kube, name, identity string, more ...string) component {
	kubeconfig := c.path("kubeconfigs", identity)
	port := c.Ports[name]
	args := []string{kube, name,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--leader-elect=false", // there is only one
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--profiling=false",
	}
	return component{
		name: name, args: append(args, more...),
		health: fmt.Sprintf("https://127.0.0.1:%d/healthz", port), port: port,
	}
}

func (c *config) controllerManager(kube string) component {
	controllers := "--controllers=*"
	if c.NoJobs {
		controllers += ",-job-controller"
	}
	return c.controlLoop(kube, "kube-controller-manager", "controller-manager", controllers,
		"--root-ca-file="+c.pki("ca.crt"),
		"--service-account-private-key-file="+c.pki("service-account.key"),
		"--use-service-account-credentials=true",
		"--cluster-signing-cert-file="+c.pki("ca.crt"),
		"--cluster-signing-key-file="+c.pki("ca.key"),
	)
}

func (c *config) scheduler(kube string) component {
	return c.controlLoop(kube, "kube-scheduler", "scheduler")
}

// controlPlane is in the order of dependence.
func (c *config) controlPlane(kube string) []component {
	return []component{c.etcd(kube), c.apiserver(kube), c.controllerManager(kube), c.scheduler(kube)}
}

// components is the whole cluster.
func (c *config) components(kube string) []component {
	all := c.controlPlane(kube)
	if c.Mode == modeKwok {
		return append(all, c.kwok())
	}
	all = append(all, c.kubeProxy(kube))
	for i, node := range c.nodes() {
		all = append(all, c.containerd(node), c.kubelet(kube, i, node))
	}
	return all
}

func (c *config) writeControlPlane() error {
	if err := writeFile(c.path("audit-policy.yaml"), render(auditPolicyText, c), 0o644); err != nil {
		return err
	}
	// Without name servers: pods get none of the host's, which they can't reach.
	if err := writeFile(c.path("resolv.conf"), []byte("options ndots:1\n"), 0o644); err != nil {
		return err
	}
	identities := map[string]string{
		c.path("kubeconfig"):                        "admin",
		c.path("kubeconfigs", "controller-manager"): "controller-manager",
		c.path("kubeconfigs", "scheduler"):          "scheduler",
		c.path("kubeconfigs", "proxy"):              "proxy",
	}
	for path, identity := range identities {
		if err := c.writeKubeconfig(path, identity); err != nil {
			return err
		}
	}
	return nil
}
