package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// isV2 tells whether the machine has the unified hierarchy only. The hybrid
// layout, v1 controllers with an empty v2 tree next to them, counts as v1.
func isV2() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// hierarchies are the folders in which each node needs its cgroup. With v1 that
// includes the empty v2 tree of the hybrid layout: runc makes cgroups there.
func hierarchies() []string {
	if isV2() {
		return []string{cgroupRoot}
	}
	entries, _ := os.ReadDir(cgroupRoot)
	var found []string
	seen := map[string]bool{}
	for _, entry := range entries {
		// "cpu" may be a link to "cpu,cpuacct": count each hierarchy once.
		path, err := filepath.EvalSymlinks(filepath.Join(cgroupRoot, entry.Name()))
		if err != nil || seen[path] {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, "cgroup.procs")); err == nil {
			seen[path] = true
			found = append(found, path)
		}
	}
	return found
}

// checkCgroups tells why real nodes can't run here, or nil.
func checkCgroups() error {
	needed := []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "freezer", "devices"}
	if isV2() {
		text, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
		if err != nil {
			return err
		}
		have := strings.Fields(string(text))
		for _, name := range []string{"cpu", "cpuset", "memory", "pids"} {
			if !contains(have, name) {
				return fmt.Errorf("the cgroup controller %q is missing in %s", name, cgroupRoot)
			}
		}
		needed = []string{"."}
	}
	for _, name := range needed {
		path := filepath.Join(cgroupRoot, name)
		if _, err := os.Stat(filepath.Join(path, "cgroup.procs")); err != nil {
			return fmt.Errorf("the cgroup controller %q is not mounted at %s", name, path)
		}
		if err := syscall.Access(path, 2); err != nil {
			return fmt.Errorf("%s can't be written", path)
		}
	}
	return nil
}

func contains(list []string, word string) bool {
	for _, each := range list {
		if each == word {
			return true
		}
	}
	return false
}

// makeNodeCgroup makes the cgroup under which the kubelet puts all pods. The
// kubelet insists that it exists in every hierarchy.
func (c *config) makeNodeCgroup(node string) error {
	for _, hierarchy := range hierarchies() {
		if err := makeCgroup(hierarchy, c.nodeCgroup(node)); err != nil {
			return err
		}
	}
	return nil
}

func makeCgroup(hierarchy, name string) error {
	if isV2() {
		text, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
		if err != nil {
			return err
		}
		enable := "+" + strings.Join(strings.Fields(string(text)), " +")
		control := filepath.Join(hierarchy, "cgroup.subtree_control")
		if err := os.WriteFile(control, []byte(enable), 0); err != nil {
			return fmt.Errorf("enable the controllers in %s: %w", control, err)
		}
	}
	path := filepath.Join(hierarchy, name)
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a cgroup: %w", err)
	}
	if isV2() {
		return nil
	}
	// A new v1 cpuset is empty, and nothing can run in an empty one.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(hierarchy, file))
		if err != nil {
			continue // another hierarchy than cpuset
		}
		if err := os.WriteFile(filepath.Join(path, file), text, 0); err != nil {
			return err
		}
	}
	return nil
}

// trackingCgroup holds every process outside the pods: components and
// what they start (containerd's shims outlive containerd). It limits nothing.
func (c *config) trackingCgroup() string {
	if c.Mode != modeReal {
		return ""
	}
	if isV2() {
		return filepath.Join(cgroupRoot, c.nodeCgroup("sys"))
	}
	return filepath.Join(cgroupRoot, "freezer", c.nodeCgroup("sys"))
}

func (c *config) makeTrackingCgroup() error {
	path := c.trackingCgroup()
	return makeCgroup(filepath.Dir(path), filepath.Base(path))
}

// cgroups lists all cgroups of this cluster, children before parents.
func (c *config) cgroups() []string {
	var found []string
	for _, hierarchy := range hierarchies() {
		roots, _ := filepath.Glob(filepath.Join(hierarchy, "shed-"+c.id+"-*"))
		for _, root := range roots {
			var inside []string
			filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					inside = append(inside, path)
				}
				return nil
			})
			for i := len(inside) - 1; i >= 0; i-- {
				found = append(found, inside[i])
			}
		}
	}
	return found
}

// removeCgroups kills what still runs in the cluster's cgroups and removes
// them. A process may fork between the listing and the kill, hence the loop.
func (c *config) removeCgroups() error {
	return poll(20*time.Second, 10*time.Millisecond, func() error {
		for _, path := range c.cgroups() {
			for _, pid := range cgroupPIDs(path) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		var last error
		for _, path := range c.cgroups() {
			if err := syscall.Rmdir(path); err != nil && err != syscall.ENOENT {
				last = fmt.Errorf("remove cgroup %s: %w", path, err)
			}
		}
		return last
	})
}

func cgroupPIDs(path string) []int {
	text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}
