package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	hostLockPath    = "/run/shed.lock"
	savedSysctlPath = "/run/shed-sysctl.json"
)

// needs maps each program or file that real nodes use to its Debian package.
var needs = []struct{ path, pack string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"/usr/lib/cni/bridge", "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"ip", "iproute2"},
	{"conntrack", "conntrack"},
	{"nsenter", "util-linux"},
	{"/bin/busybox", "busybox-static"},
}

func missingPackages() []string {
	var missing []string
	for _, need := range needs {
		if _, err := exec.LookPath(need.path); err != nil && !contains(missing, need.pack) {
			missing = append(missing, need.pack)
		}
	}
	return missing
}

// ensurePackages installs what real nodes need from the distribution.
func ensurePackages() error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	command := "apt-get install -y --no-install-recommends " + strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("missing: %s. Install with: %s (as root; on other distributions the packages of the same purpose)",
			strings.Join(missing, ", "), command)
	}
	say("installing distribution packages: %s", command)
	undo, err := forbidServices()
	if err != nil {
		return err
	}
	defer undo()
	if err := apt("update"); err != nil {
		return err
	}
	if err := apt(append([]string{"install", "-y", "--no-install-recommends"}, missing...)...); err != nil {
		return err
	}
	if missing := missingPackages(); len(missing) > 0 {
		return fmt.Errorf("after `%s` something of %s is still missing", command, strings.Join(missing, ", "))
	}
	return nil
}

func apt(args ...string) error {
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	_, err := outputOf(cmd)
	return err
}

// forbidServices keeps apt from starting the distribution's own containerd:
// no user asked for that one, and it would stay after `down`.
func forbidServices() (undo func(), err error) {
	const policy = "/usr/sbin/policy-rc.d"
	if _, err := os.Lstat(policy); err == nil {
		return func() {}, nil // the machine has a policy of its own: keep it
	}
	if err := os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		return nil, err
	}
	return func() { os.Remove(policy) }, nil
}

// kubeletSysctls are the kernel settings a kubelet changes for the whole
// machine; `down` puts them back.
var kubeletSysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// saveSysctls runs under the host's lock. The first cluster saves; a later one
// would only save what the first one's kubelets made of them.
func saveSysctls() error {
	if _, err := os.Stat(savedSysctlPath); err == nil {
		return nil
	}
	saved := map[string]string{}
	for _, name := range kubeletSysctls {
		if text, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			saved[name] = strings.TrimSpace(string(text))
		}
	}
	text, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	return writeFile(savedSysctlPath, text, 0o600)
}

// leaveHost removes what all clusters share, if this was the last one.
func (c *config) leaveHost() error {
	others, _ := filepath.Glob("/run/shed-*")
	for _, path := range others {
		if info, err := os.Stat(path); err == nil && info.IsDir() && path != c.runtime() {
			return nil
		}
	}
	text, err := os.ReadFile(savedSysctlPath)
	if err == nil {
		saved := map[string]string{}
		if err := json.Unmarshal(text, &saved); err != nil {
			return fmt.Errorf("%s is damaged: %w", savedSysctlPath, err)
		}
		for name, value := range saved {
			if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0); err != nil {
				return fmt.Errorf("restore the kernel setting %s: %w", name, err)
			}
		}
		os.Remove(savedSysctlPath)
	}
	removeSharedLeftovers()
	return nil
}

// removeSharedLeftovers deletes what kubelet, containerd and the CNI library
// put at fixed paths. os.Remove leaves a folder that holds anything of others.
func removeSharedLeftovers() {
	removeDeadSockets("/run/containerd/s")
	for _, path := range []string{
		"/var/lib/kubelet/device-plugins/kubelet.sock",
		"/var/lib/kubelet/device-plugins/DEPRECATION",
		"/var/lib/kubelet/device-plugins",
		"/var/lib/kubelet",
		"/var/log/containers", "/var/log/pods",
		"/run/containerd/s", "/run/containerd",
		"/var/lib/cni/results", "/var/lib/cni/networks", "/var/lib/cni",
		hostLockPath,
	} {
		os.Remove(path)
	}
}

// removeDeadSockets deletes sockets without a listener: a shim that was
// killed while its cluster ran leaves one that nothing refers to any more.
func removeDeadSockets(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		connection, err := net.Dial("unix", path)
		if err == nil {
			connection.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
}
