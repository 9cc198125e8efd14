package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func runStatus(args []string) error {
	if len(args) > 0 {
		return usagef("usage: cluster status")
	}
	c, err := existing()
	if err != nil {
		return err
	}
	kube, err := kubeProgram.folder(c.minor)
	if err != nil {
		return err
	}
	fmt.Println(c.summary())
	bad := 0
	for _, status := range c.inspect(c.components(filepath.Join(kube, "kube"))) {
		health, port, pid := "healthy", "-", "-"
		if status.err != nil {
			bad++
			health = "NOT healthy: " + status.err.Error()
		}
		if status.port != 0 {
			port = strconv.Itoa(status.port)
		}
		if status.pid != 0 {
			pid = strconv.Itoa(status.pid)
		}
		fmt.Printf("%-24s pid %-7s port %-6s %s\n", status.name, pid, port, health)
	}
	bad += c.printNodes()
	if bad > 0 {
		return fmt.Errorf("%d of the above are not as they should be: run `cluster up` to start what is missing", bad)
	}
	return nil
}

func (c *config) printNodes() (bad int) {
	client, err := c.client()
	var ready map[string]bool
	if err == nil {
		ready, err = c.readyNodes(client)
	}
	if err != nil {
		fmt.Printf("nodes: unknown: %v\n", err)
		return 1
	}
	for _, node := range c.nodes() {
		state := "Ready"
		if !ready[node] {
			state = "NOT Ready"
			bad++
		}
		if c.Mode == modeReal {
			if quota, ok := c.cpuCap(node); ok {
				state += fmt.Sprintf(", slowed to %.2f cores", quota)
			}
		}
		fmt.Printf("node %-19s %s\n", node, state)
	}
	return bad
}

func runKubeconfig(args []string) error {
	if len(args) > 0 {
		return usagef("usage: cluster kubeconfig")
	}
	c, err := existing()
	if err != nil {
		return err
	}
	fmt.Println(c.path("kubeconfig"))
	return nil
}

func runEnv(args []string) error {
	if len(args) > 0 {
		return usagef(`usage: eval "$(cluster env)"`)
	}
	c, err := existing()
	if err != nil {
		return err
	}
	kube, err := kubeProgram.folder(c.minor)
	if err != nil {
		return err
	}
	// The folders of helm and kwok are named even before they are built, so
	// that a shell which did its eval earlier finds them afterwards.
	folders := []string{filepath.Join(kube, "bin"), toolFolder("helm"), toolFolder("kwok")}
	fmt.Printf("export KUBECONFIG=%s\n", shellQuote(c.path("kubeconfig")))
	fmt.Printf("export SHED_CLUSTER_STATE=%s\n", shellQuote(c.state))
	fmt.Printf("export PATH=%s:\"$PATH\"\n", shellQuote(strings.Join(folders, ":")))
	if c.Mode == modeReal {
		// Clients that honour a proxy would send it requests for the apiserver.
		fmt.Printf("export NO_PROXY=\"${NO_PROXY:+$NO_PROXY,}%s\"\n", c.wholeSubnet())
		fmt.Printf("export no_proxy=\"$NO_PROXY\"\n")
	}
	return nil
}

func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func runLogs(args []string) error {
	c, err := existing()
	if err != nil {
		return err
	}
	if len(args) != 1 || !contains(c.recorded(), args[0]) {
		return usagef("usage: cluster logs COMPONENT, one of: %s", strings.Join(c.recorded(), " "))
	}
	text, err := os.ReadFile(c.logFile(args[0]))
	if err != nil {
		return err
	}
	say("the end of %s:", c.logFile(args[0]))
	fmt.Println(lastLines(string(text), 50))
	return nil
}

// cpuPeriod is the accounting period of the CPU cap, in microseconds.
const cpuPeriod = 100000

// minQuota is the smallest quota that the kernel takes.
const minQuota = 1000

func runSlow(args []string) error {
	if len(args) != 2 {
		return usagef("usage: cluster slow NODE FRACTION, for example: cluster slow n2 0.2")
	}
	c, err := existing()
	if err != nil {
		return err
	}
	node := args[0]
	if !contains(c.nodes(), node) {
		return usagef("slow: there is no node %q; the nodes are %s", node, strings.Join(c.nodes(), " "))
	}
	if c.Mode == modeKwok {
		return usagef("slow: node %s is fake (kwok) and uses no CPU; set the annotation shed.dev/kwok-run-ms on pods instead", node)
	}
	fraction, err := strconv.ParseFloat(args[1], 64)
	if err != nil || !(fraction > 0 && fraction <= 1) {
		return usagef("slow: FRACTION %q must be a number above 0 and at most 1, where 1 lifts the cap", args[1])
	}
	cores, err := onlineCores()
	if err != nil {
		return err
	}
	share := cores / float64(c.Count)
	quota := int(fraction * share * cpuPeriod)
	if fraction < 1 && quota < minQuota {
		return usagef("slow: %s of a share of %.2f cores is less than the kernel's smallest quota: use at least %.3f",
			args[1], share, minQuota/(share*cpuPeriod))
	}
	lock, err := lockCluster(c.state)
	if err != nil {
		return err
	}
	defer lock.Close()
	if fraction == 1 {
		quota = -1
	}
	if err := c.setCPUCap(node, quota); err != nil {
		return err
	}
	if quota < 0 {
		fmt.Printf("node %s: no cap (quota -1)\n", node)
		return nil
	}
	fmt.Printf("node %s: %d us of CPU per %d us (%.3f cores: %s of its even share of %.2f)\n",
		node, quota, cpuPeriod, float64(quota)/cpuPeriod, args[1], share)
	return nil
}

// cpuFile is the file that holds a node's cap.
func (c *config) cpuFile(node string) string {
	if isV2() {
		return filepath.Join(cgroupRoot, c.nodeCgroup(node), "cpu.max")
	}
	return filepath.Join(cgroupRoot, "cpu", c.nodeCgroup(node), "cpu.cfs_quota_us")
}

func (c *config) setCPUCap(node string, quota int) error {
	text := strconv.Itoa(quota)
	if isV2() {
		text = fmt.Sprintf("%d %d", quota, cpuPeriod)
		if quota < 0 {
			text = fmt.Sprintf("max %d", cpuPeriod)
		}
	}
	path := c.cpuFile(node)
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		return fmt.Errorf("cap the CPU of node %s: %w; if the cgroup is missing, run `cluster up`", node, err)
	}
	return nil
}

// cpuCap reads a node's cap in cores; false if it has none.
func (c *config) cpuCap(node string) (float64, bool) {
	text, err := os.ReadFile(c.cpuFile(node))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return 0, false
	}
	quota, err := strconv.ParseFloat(fields[0], 64)
	return quota / cpuPeriod, err == nil && quota > 0
}

// onlineCores counts the machine's processors. Not runtime.NumCPU: that is
// what this process may use, which may be fewer.
func onlineCores() (float64, error) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return 0, err
	}
	count := 0
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "processor") {
			count++
		}
	}
	if count == 0 {
		return 0, fmt.Errorf("/proc/cpuinfo lists no processor")
	}
	return float64(count), nil
}
