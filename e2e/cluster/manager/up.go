package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	defaultRealNodes = 3
	defaultKwokNodes = 10
	// Addresses: the nodes and their pod subnets are 10.x.0.11 to 10.x.0.126
	// and 10.x.11.0 to 10.x.126.0; a machine gives up long before.
	maxRealNodes = 50
	maxKwokNodes = 5000
)

type upOptions struct {
	minor          minor
	nodes          string
	count, maxPods int
	noJobs         bool
	auditPodStatus bool
	given          map[string]bool // by flag, or versionVariable
}

func parseUp(args []string) (upOptions, error) {
	options := upOptions{given: map[string]bool{}}
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&options.nodes, "nodes", "auto", "")
	flags.IntVar(&options.count, "count", 0, "")
	flags.IntVar(&options.maxPods, "max-pods", 60, "")
	flags.BoolVar(&options.noJobs, "no-job-controller", false, "")
	flags.BoolVar(&options.auditPodStatus, "audit-pod-status", false, "")
	if err := flags.Parse(args); err != nil {
		return options, usagef("up: %v; the options are --nodes real|kwok|auto, --count N, --max-pods N, --no-job-controller and --audit-pod-status", err)
	}
	flags.Visit(func(f *flag.Flag) { options.given[f.Name] = true })
	var err error
	if options.minor, options.given[versionVariable], err = requestedMinor(); err != nil {
		return options, err
	}
	if flags.NArg() > 0 {
		return options, usagef("up: unexpected argument %q; the options are --nodes, --count, --max-pods, --no-job-controller and --audit-pod-status", flags.Arg(0))
	}
	if options.nodes != "auto" && options.nodes != modeReal && options.nodes != modeKwok {
		return options, usagef("up: unknown --nodes=%s: use real, kwok or auto", options.nodes)
	}
	if options.given["count"] && (options.count < 1 || options.count > maxKwokNodes) {
		return options, usagef("up: --count=%d must be between 1 and %d", options.count, maxKwokNodes)
	}
	if options.maxPods < 1 || options.maxPods > 250 {
		return options, usagef("up: --max-pods=%d must be between 1 and 250, the addresses a node has for pods", options.maxPods)
	}
	return options, nil
}

func runUp(args []string) error {
	options, err := parseUp(args)
	if err != nil {
		return err
	}
	state, err := stateFolder()
	if err != nil {
		return err
	}
	lock, err := lockCluster(state)
	if err != nil {
		return err
	}
	defer lock.Close()
	c, err := loadConfig(state)
	switch {
	case errors.Is(err, errNoCluster):
		if c, err = planCluster(state, options); err != nil {
			os.Remove(lock.Name()) // leaves no trace of a cluster that can't be
			os.Remove(state)
			return err
		}
	case err != nil:
		return err
	default:
		if err := c.sameAs(options); err != nil {
			return err
		}
		if c.allHealthy() == nil {
			say("the cluster is up: %s", c.summary())
			return nil
		}
		say("something of the cluster is missing; starting it again")
		// Without the network nothing can answer: prepareHost sees to that.
		if c.Mode == modeKwok || c.networkUp() {
			if err := c.killHung(); err != nil {
				return err
			}
		}
	}
	return c.bringUp(lock)
}

// killHung ends components that run but do not answer, so that they are started
// afresh. A busy machine is given time first.
func (c *config) killHung() error {
	kube, err := ensureKube(c.minor)
	if err != nil {
		return err
	}
	all := c.components(kube)
	patience := time.Now().Add(10 * time.Second)
	return poll(20*time.Second, 200*time.Millisecond, func() error {
		var hung []string
		for _, status := range c.inspect(all) {
			if _, alive := c.pid(status.name); !alive || status.err == nil {
				continue
			}
			hung = append(hung, status.name)
			if time.Now().After(patience) {
				say("%s does not answer (%v); starting it afresh", status.name, status.err)
				syscall.Kill(status.pid, syscall.SIGKILL)
			}
		}
		if len(hung) > 0 {
			return fmt.Errorf("not answering: %s", strings.Join(hung, ", "))
		}
		return nil
	})
}

// planCluster decides what the cluster will be and records that.
func planCluster(state string, options upOptions) (*config, error) {
	c := newConfig(state)
	c.minor, c.Version = options.minor, options.minor.version
	c.MaxPods, c.NoJobs, c.AuditPodStatus = options.maxPods, options.noJobs, options.auditPodStatus
	var err error
	if c.Mode, err = chooseMode(options.nodes); err != nil {
		return nil, err
	}
	c.Count = options.count
	if !options.given["count"] {
		c.Count = map[string]int{modeReal: defaultRealNodes, modeKwok: defaultKwokNodes}[c.Mode]
	}
	if c.Mode == modeReal && c.Count > maxRealNodes {
		return nil, usagef("up: --count=%d: at most %d real nodes fit; kwok nodes may be more", c.Count, maxRealNodes)
	}
	ports := []string{"etcd", "etcd-peer", "kube-controller-manager", "kube-scheduler"}
	if c.Mode == modeReal {
		c.Ports["kube-apiserver"] = 6443 // on an address of its own, so never taken
	} else {
		ports = append(ports, "kube-apiserver", "kwok")
	}
	if err := c.choosePorts(ports...); err != nil {
		return nil, err
	}
	return c, c.save()
}

func chooseMode(wanted string) (string, error) {
	if wanted == modeKwok {
		return modeKwok, nil
	}
	obstacle := checkCgroups()
	if os.Geteuid() != 0 {
		obstacle = errors.New("not root")
	}
	switch {
	case obstacle == nil:
		return modeReal, nil
	case wanted == modeReal:
		return "", fmt.Errorf("real nodes are impossible here: %w; run as root on a machine whose cgroups can be written, or use --nodes kwok", obstacle)
	default:
		say("fake nodes (kwok), since real ones are impossible here: %v", obstacle)
		return modeKwok, nil
	}
}

// sameAs refuses options that contradict the cluster that is there.
func (c *config) sameAs(options upOptions) error {
	differs := ""
	switch {
	case options.given[versionVariable] && options.minor != c.minor:
		differs = versionVariable + "=" + c.Version
	case options.nodes != "auto" && options.nodes != c.Mode:
		differs = "--nodes=" + c.Mode
	case options.given["count"] && options.count != c.Count:
		differs = fmt.Sprintf("--count=%d", c.Count)
	case options.given["max-pods"] && options.maxPods != c.MaxPods:
		differs = fmt.Sprintf("--max-pods=%d", c.MaxPods)
	case options.given["no-job-controller"] && options.noJobs != c.NoJobs:
		differs = fmt.Sprintf("--no-job-controller=%t", c.NoJobs)
	case options.given["audit-pod-status"] && options.auditPodStatus != c.AuditPodStatus:
		differs = fmt.Sprintf("--audit-pod-status=%t", c.AuditPodStatus)
	}
	if differs != "" {
		return fmt.Errorf("the cluster in %s was made with %s: run `cluster down` first, or set SHED_CLUSTER_STATE to another folder", c.state, differs)
	}
	return nil
}

func (c *config) bringUp(lock *os.File) error {
	began := time.Now()
	if c.Mode == modeReal {
		if err := ensurePackages(); err != nil {
			return err
		}
	}
	kube, err := ensureKube(c.minor)
	if err != nil {
		return err
	}
	var archives []string
	if c.Mode == modeReal {
		archives, err = baseImages(c.minor)
	} else {
		_, err = ensureTool("kwok")
	}
	if err != nil {
		return err
	}
	built := time.Now()
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.startAll(kube, archives, lock); err != nil {
		return err
	}
	say("the cluster is up after %.1f s: %s", time.Since(built).Seconds(), c.summary())
	if waited := built.Sub(began); waited > 5*time.Second {
		say("(building and installing took %.0f s before that)", waited.Seconds())
	}
	say(`use it with: eval "$(e2e/cluster/cluster env)"`)
	return nil
}

// prepare makes everything the processes need; all of it may exist already.
func (c *config) prepare() error {
	if c.Mode == modeReal {
		if err := c.prepareHost(); err != nil {
			return err
		}
	}
	if err := c.ensurePKI(); err != nil {
		return err
	}
	if err := c.writeControlPlane(); err != nil {
		return err
	}
	if c.Mode != modeReal {
		return nil
	}
	if err := c.makeTrackingCgroup(); err != nil {
		return err
	}
	for i, node := range c.nodes() {
		if err := c.makeNodeCgroup(node); err != nil {
			return err
		}
		if err := c.writeNode(i, node); err != nil {
			return err
		}
	}
	return c.writeKubeProxy()
}

func (c *config) prepareHost() error {
	host, err := lockHost()
	if err != nil {
		return err
	}
	defer host.Close()
	if err := os.MkdirAll(c.runtime(), 0o700); err != nil {
		return err
	}
	if err := saveSysctls(); err != nil {
		return err
	}
	if c.networkUp() {
		return nil
	}
	// What still runs lives in a network that nothing leads to any more.
	if err := c.killRecorded(); err != nil {
		return err
	}
	if err := c.removeCgroups(); err != nil {
		return err
	}
	c.removeShimSockets()
	return c.makeNetwork()
}

// startAll starts what does not run, then waits for what takes time side by
// side: the images on the nodes, the apiserver and the nodes.
func (c *config) startAll(kube string, archives []string, lock *os.File) error {
	all := c.components(kube)
	for _, comp := range all {
		// A client of the apiserver that does not find it ready either ends or
		// waits longer and longer between its tries: those start later.
		early := comp.name == "etcd" || comp.name == "kube-apiserver" || strings.HasPrefix(comp.name, "containerd-")
		if !early {
			continue
		}
		if err := c.start(comp, lock); err != nil {
			return err
		}
	}
	loaded := make(chan error, 1)
	go func() { loaded <- c.loadBase(archives) }()
	if err := c.waitForAPI(); err != nil {
		return err
	}
	for _, comp := range all {
		if err := c.start(comp, lock); err != nil {
			return err
		}
	}
	if c.Mode == modeKwok {
		if err := c.makeFakeNodes(); err != nil {
			return err
		}
	}
	if err := <-loaded; err != nil {
		return err
	}
	return c.waitHealthy(all, lock)
}

// restartsMax is how often a component that ends while the cluster comes up is
// started again. A controller-manager once ended right after its start next to a
// busy apiserver. A kubelet would restart it as well.
const restartsMax = 3

func (c *config) waitHealthy(all []component, lock *os.File) error {
	restarts := map[string]int{}
	return poll(90*time.Second, 100*time.Millisecond, func() error {
		for _, comp := range all {
			if !c.hasEnded(comp.name) || restarts[comp.name] == restartsMax {
				continue
			}
			restarts[comp.name]++
			say("%s ended; starting it again (see `cluster logs %s`)", comp.name, comp.name)
			if err := c.start(comp, lock); err != nil {
				return err
			}
		}
		return c.allHealthy()
	})
}

func (c *config) waitForAPI() error {
	client := probeClient()
	return poll(90*time.Second, 50*time.Millisecond, func() error {
		for _, name := range []string{"etcd", "kube-apiserver"} {
			if c.hasEnded(name) {
				return fmt.Errorf("%s ended: see `cluster logs %s`", name, name)
			}
		}
		return probe(client, c.apiURL()+"/readyz")
	})
}

// loadBase puts the images every pod needs on the nodes.
func (c *config) loadBase(archives []string) error {
	for _, node := range c.nodes() {
		if len(archives) == 0 {
			break
		}
		if err := poll(60*time.Second, 50*time.Millisecond, func() error {
			_, err := c.ctr(node, "version")
			return err
		}); err != nil {
			return fmt.Errorf("containerd of node %s does not answer (see `cluster logs containerd-%s`): %w", node, node, err)
		}
	}
	for _, archive := range archives {
		if _, err := c.loadEverywhere(archive); err != nil {
			return err
		}
	}
	return nil
}

// allHealthy is nil once every component works and every node is Ready.
func (c *config) allHealthy() error {
	if c.Mode == modeReal && !c.networkUp() {
		return errors.New("the cluster's network is missing")
	}
	kube, err := ensureKube(c.minor)
	if err != nil {
		return err
	}
	var bad []string
	for _, status := range c.inspect(c.components(kube)) {
		if status.err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", status.name, status.err))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("not healthy: %s (see `cluster logs COMPONENT`)", strings.Join(bad, "; "))
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	ready, err := c.readyNodes(client)
	if err != nil {
		return err
	}
	for _, node := range c.nodes() {
		if !ready[node] {
			bad = append(bad, node)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("nodes that are not Ready: %s (see `cluster logs kubelet-%s`)", strings.Join(bad, " "), bad[0])
	}
	// Pods are refused in a namespace until its service account exists.
	return c.call(client, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil, nil)
}

type componentStatus struct {
	component
	pid int
	err error
}

// inspect asks all components at once: one that hangs must not add up.
func (c *config) inspect(all []component) []componentStatus {
	found := make([]componentStatus, len(all))
	client := probeClient()
	var group sync.WaitGroup
	for i, comp := range all {
		group.Add(1)
		go func() {
			defer group.Done()
			pid, alive := c.pid(comp.name)
			found[i] = componentStatus{component: comp, pid: pid}
			switch {
			case !alive:
				found[i].err = errors.New("not running")
			case comp.health != "":
				found[i].err = probe(client, comp.health)
			}
		}()
	}
	group.Wait()
	return found
}

func (c *config) summary() string {
	kind := "real"
	if c.Mode == modeKwok {
		kind = "fake (kwok)"
	}
	return fmt.Sprintf("%d %s nodes, Kubernetes %s, state in %s", c.Count, kind, c.minor.tag(), c.state)
}
