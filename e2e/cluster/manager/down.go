package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// runDown removes everything an `up` could have made, whether that `up` ended,
// failed or was killed at any point: every step first looks what is there.
func runDown(args []string) error {
	if len(args) > 0 {
		return usagef("usage: cluster down")
	}
	state, err := stateFolder()
	if err != nil {
		return err
	}
	c := newConfig(state)
	if !fileExists(state) && !fileExists(c.runtime()) {
		say("no cluster in %s", state)
		return nil
	}
	if err := refuseForeignFolder(state); err != nil {
		return err
	}
	began := time.Now()
	lock, err := lockCluster(state)
	if err != nil {
		return err
	}
	defer lock.Close()
	// A damaged record must not keep the cluster alive: all that `down` needs
	// follows from the folder's name.
	if loaded, err := loadConfig(state); err == nil {
		c = loaded
	} else if fileExists(c.runtime()) {
		c.Mode = modeReal
	}
	if err := c.tearDown(); err != nil {
		return err
	}
	say("the cluster in %s is gone (%.1f s)", state, time.Since(began).Seconds())
	return nil
}

// refuseForeignFolder keeps a mistyped SHED_CLUSTER_STATE from deleting a
// folder that never held a cluster.
func refuseForeignFolder(state string) error {
	entries, err := os.ReadDir(state)
	if err != nil || len(entries) == 0 {
		return nil
	}
	for _, entry := range entries {
		if entry.Name() == "cluster.json" || entry.Name() == "lock" {
			return nil
		}
	}
	return fmt.Errorf("%s holds files but no cluster (no cluster.json): not deleting it; check SHED_CLUSTER_STATE", state)
}

func (c *config) tearDown() error {
	if err := c.killRecorded(); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := c.removeCgroups(); err != nil {
			return err
		}
		c.removeShimSockets()
		if err := c.unmountAll(); err != nil {
			return err
		}
		if err := c.leaveMachine(); err != nil {
			return err
		}
	}
	return c.removeState()
}

// leaveMachine removes the network and what lies outside the state folder.
func (c *config) leaveMachine() error {
	if !fileExists(c.runtime()) {
		return nil // never had real nodes
	}
	host, err := lockHost()
	if err != nil {
		return err
	}
	defer host.Close()
	if err := c.removeNetwork(); err != nil {
		return err
	}
	c.removeLogLinks()
	c.removeNetworkRecords()
	if err := os.RemoveAll(c.runtime()); err != nil {
		return err
	}
	return c.leaveHost()
}

// removeShimSockets deletes the sockets that containerd's shims make at a
// fixed path under a hashed name; each shim's bundle says which is its own.
func (c *config) removeShimSockets() {
	pattern := c.runtime("*", "state", "io.containerd.runtime.v2.task", "*", "*", "address")
	bundles, _ := filepath.Glob(pattern)
	for _, bundle := range bundles {
		text, err := os.ReadFile(bundle)
		if err != nil {
			continue
		}
		socket := strings.TrimPrefix(strings.TrimSpace(string(text)), "unix://")
		if strings.HasPrefix(socket, "/run/containerd/s/") {
			os.Remove(socket)
		}
	}
}

// removeNetworkRecords deletes what the CNI library noted at a fixed path: our
// networks by name, the loopback network, which all share, by pod sandbox.
func (c *config) removeNetworkRecords() {
	const folder = "/var/lib/cni/results/"
	records, _ := filepath.Glob(folder + c.cniName("*"))
	sandboxes, _ := filepath.Glob(c.runtime("*", "state", "io.containerd.grpc.v1.cri", "sandboxes", "*"))
	for _, sandbox := range sandboxes {
		records = append(records, folder+"cni-loopback-"+filepath.Base(sandbox)+"-lo")
	}
	for _, record := range records {
		os.Remove(record)
	}
}

// removeLogLinks deletes the links that kubelets put into /var/log/containers
// for log collectors, as far as they point into this cluster.
func (c *config) removeLogLinks() {
	links, _ := filepath.Glob("/var/log/containers/*.log")
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, c.state+"/") {
			os.Remove(link)
		}
	}
}

// unmountAll unmounts what containerd and the kubelets mounted in the cluster's
// folders: root file systems, shared memory, volumes, network namespaces.
func (c *config) unmountAll() error {
	return poll(10*time.Second, 20*time.Millisecond, func() error {
		mounts, err := c.mounts()
		if err != nil {
			return err
		}
		for _, path := range mounts {
			if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil && err != syscall.EINVAL {
				return fmt.Errorf("unmount %s: %w", path, err)
			}
		}
		if len(mounts) > 0 {
			return fmt.Errorf("still mounted: %s", strings.Join(mounts, " "))
		}
		return nil
	})
}

// mounts lists the cluster's mounts, the deepest first.
func (c *config) mounts() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// The kernel shows the resolved path, so a link in ours must be resolved.
	state := c.state
	if real, err := filepath.EvalSymlinks(state); err == nil {
		state = real
	}
	var found []string
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 5 {
			continue
		}
		path := unescapeMount(fields[4])
		if strings.HasPrefix(path, state+"/") || strings.HasPrefix(path, c.runtime()+"/") {
			found = append(found, path)
		}
	}
	sort.Slice(found, func(a, b int) bool { return len(found[a]) > len(found[b]) })
	return found, scanner.Err()
}

// unescapeMount undoes the octal escapes of mountinfo (a space is \040).
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// removeState deletes the folder, the lock last: as long as it is there, other
// commands on this cluster wait.
func (c *config) removeState() error {
	entries, err := os.ReadDir(c.state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == "lock" {
			continue
		}
		if err := os.RemoveAll(c.path(entry.Name())); err != nil {
			return err
		}
	}
	os.Remove(c.path("lock"))
	if err := os.Remove(c.state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
