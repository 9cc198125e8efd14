package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func (c *config) socket(node string) string { return c.runtime(node, "containerd.sock") }

func (c *config) nodePath(node string, parts ...string) string {
	return c.path(append([]string{"nodes", node}, parts...)...)
}

func (c *config) cniName(node string) string { return "shed-" + c.id + "-" + node }

// cniPlugins is where the distribution keeps them; the second is where most
// others do.
func cniPlugins() string {
	for _, folder := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if fileExists(filepath.Join(folder, "bridge")) {
			return folder
		}
	}
	return "/usr/lib/cni"
}

// writeNode writes the configuration of one node. Each node has everything of
// its own: containerd with root, state and socket, the bridge with a subnet,
// and the kubelet with its folders and certificates.
func (c *config) writeNode(i int, node string) error {
	for _, folder := range []string{"containerd", "kubelet", "pod-logs", "plugins"} {
		if err := os.MkdirAll(c.nodePath(node, folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.runtime(node), 0o700); err != nil {
		return err
	}
	files := []struct {
		path, text string
		data       map[string]any
	}{
		{c.nodePath(node, "containerd.toml"), containerdText, map[string]any{
			"Root": c.nodePath(node, "containerd"), "State": c.runtime(node, "state"),
			"Socket": c.socket(node), "Pause": c.minor.pauseImage(), "Runc": c.runtime(node, "runc"),
			"CNIPlugins": cniPlugins(), "CNIConf": c.nodePath(node, "cni"),
		}},
		{c.nodePath(node, "cni", "10-bridge.conflist"), cniText, map[string]any{
			"Name": c.cniName(node), "Bridge": "br-" + node,
			"Data": c.nodePath(node, "addresses"), "Subnet": c.podSubnet(i),
		}},
		{c.nodePath(node, "kubelet.yaml"), kubeletText, map[string]any{
			"IP": c.nodeIP(i), "CA": c.pki("ca.crt"),
			"Cert": c.pki(node + "-serving.crt"), "Key": c.pki(node + "-serving.key"),
			"Socket": c.socket(node), "Cgroup": c.nodeCgroup(node),
			"DNS": c.serviceIP(10), "ResolvConf": c.path("resolv.conf"), "MaxPods": c.MaxPods,
			"PodLogs": c.nodePath(node, "pod-logs"), "Plugins": c.nodePath(node, "plugins"),
		}},
	}
	for _, file := range files {
		if err := writeFile(file.path, render(file.text, file.data), 0o644); err != nil {
			return err
		}
	}
	return c.writeKubeconfig(c.path("kubeconfigs", node), node)
}

func (c *config) containerd(node string) component {
	return component{
		name:  "containerd-" + node,
		args:  []string{"containerd", "--config", c.nodePath(node, "containerd.toml")},
		inNet: true,
	}
}

func (c *config) kubelet(kube string, i int, node string) component {
	return component{
		name: "kubelet-" + node,
		args: []string{kube, "kubelet",
			"--config=" + c.nodePath(node, "kubelet.yaml"),
			"--kubeconfig=" + c.path("kubeconfigs", node),
			"--hostname-override=" + node,
			"--node-ip=" + c.nodeIP(i),
			"--root-dir=" + c.nodePath(node, "kubelet"),
			"--cert-dir=" + c.nodePath(node, "kubelet-pki"),
		},
		inNet:  true,
		health: fmt.Sprintf("http://%s:10248/healthz", c.nodeIP(i)),
		port:   10250,
	}
}

func (c *config) kubeProxy(kube string) component {
	return component{
		name:   "kube-proxy",
		args:   []string{kube, "kube-proxy", "--config=" + c.path("kube-proxy.yaml")},
		inNet:  true,
		health: fmt.Sprintf("http://%s:10256/healthz", c.nodeIP(0)),
		port:   10256,
	}
}

func (c *config) writeKubeProxy() error {
	text := render(kubeProxyText, map[string]any{
		"Node": c.nodes()[0], "IP": c.nodeIP(0), "LowerSubnet": c.lowerSubnet(),
		"Kubeconfig": c.path("kubeconfigs", "proxy"),
	})
	return writeFile(c.path("kube-proxy.yaml"), text, 0o644)
}
