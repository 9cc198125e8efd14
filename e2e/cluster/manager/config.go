package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

const (
	modeReal = "real"
	modeKwok = "kwok"
)

// config is everything about one cluster that must survive between commands.
// It is written before anything is started, so that `down` can undo an `up`
// that was killed at any moment.
type config struct {
	Version        string         `json:"kubernetes"` // such as 1.37.2
	Mode           string         `json:"mode"`
	Count          int            `json:"count"`
	MaxPods        int            `json:"maxPods"`
	NoJobs         bool           `json:"noJobController"`
	AuditPodStatus bool           `json:"auditPodStatus"`
	Net            int            `json:"net"` // second byte of the cluster's 10.x.0.0/16
	Ports          map[string]int `json:"ports"`

	minor minor  // what Version names
	id    string // short hash of the state folder: names everything outside it
	state string
}

var errNoCluster = errors.New("no cluster here")

// stateFolder is the one place that decides which cluster a command means.
func stateFolder() (string, error) {
	folder := os.Getenv("SHED_CLUSTER_STATE")
	if folder == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if base == "" {
			base = filepath.Join(os.Getenv("HOME"), ".local", "state")
		}
		folder = filepath.Join(base, "shed", "cluster")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if folder == "/" || folder == os.Getenv("HOME") {
		return "", fmt.Errorf("SHED_CLUSTER_STATE=%s would let `down` delete it; name a folder of its own", folder)
	}
	return folder, nil
}

// clusterID must not change with symbolic links on the way to the folder:
// the same cluster would get two names.
func clusterID(folder string) string {
	if real, err := filepath.EvalSymlinks(filepath.Dir(folder)); err == nil {
		folder = filepath.Join(real, filepath.Base(folder))
	}
	sum := sha256.Sum256([]byte(folder))
	return hex.EncodeToString(sum[:3])
}

func newConfig(state string) *config {
	return &config{id: clusterID(state), state: state, Ports: map[string]int{}}
}

func loadConfig(state string) (*config, error) {
	c := newConfig(state)
	text, err := os.ReadFile(c.path("cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoCluster
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s is damaged (%v): run `cluster down`, then `up`", c.path("cluster.json"), err)
	}
	if c.Version == "" {
		// Clusters of earlier versions of this program had no choice.
		c.Version = "1.34.4"
	}
	if c.minor, err = findMinor(c.Version); err != nil {
		return nil, fmt.Errorf("the cluster in %s has Kubernetes %q, which this version of the program does not start: run `cluster down`, then `up`", state, c.Version)
	}
	return c, nil
}

// existing is for the commands that need a cluster.
func existing() (*config, error) {
	state, err := stateFolder()
	if err != nil {
		return nil, err
	}
	c, err := loadConfig(state)
	if errors.Is(err, errNoCluster) {
		return nil, fmt.Errorf("no cluster in %s: run `cluster up` first, or set SHED_CLUSTER_STATE to the folder of the one you mean", state)
	}
	return c, err
}

func (c *config) save() error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.path("cluster.json"), append(text, '\n'), 0o600)
}

func (c *config) path(parts ...string) string {
	return filepath.Join(append([]string{c.state}, parts...)...)
}

// runtime holds sockets and mounts: a short path, because the path of a unix
// socket must stay below 108 bytes, and a folder that a reboot empties.
func (c *config) runtime(parts ...string) string {
	return filepath.Join(append([]string{"/run/shed-" + c.id}, parts...)...)
}

func (c *config) logFile(component string) string { return c.path("logs", component+".log") }

func (c *config) nodes() []string {
	names := make([]string, c.Count)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i+1)
	}
	return names
}

// The cluster's 10.x.0.0/16: .0.1 is the host's end of the link, .0.11 and up
// are the nodes, .11.0/24 and up their pods, the upper half the services.
func (c *config) hostIP() string             { return fmt.Sprintf("10.%d.0.1", c.Net) }
func (c *config) nodeIP(i int) string        { return fmt.Sprintf("10.%d.0.%d", c.Net, 11+i) }
func (c *config) podSubnet(i int) string     { return fmt.Sprintf("10.%d.%d.0/24", c.Net, 11+i) }
func (c *config) wholeSubnet() string        { return fmt.Sprintf("10.%d.0.0/16", c.Net) }
func (c *config) lowerSubnet() string        { return fmt.Sprintf("10.%d.0.0/17", c.Net) }
func (c *config) serviceSubnet() string      { return fmt.Sprintf("10.%d.128.0/17", c.Net) }
func (c *config) serviceIP(n int) string     { return fmt.Sprintf("10.%d.128.%d", c.Net, n) }
func (c *config) nodeCgroup(n string) string { return "shed-" + c.id + "-" + n }

// apiAddress is where the apiserver listens. With real nodes that is the
// host's end of the private link, which pods reach too; nothing is opened to
// the outside network.
func (c *config) apiAddress() string {
	if c.Mode == modeReal {
		return c.hostIP()
	}
	return "127.0.0.1"
}

func (c *config) apiURL() string {
	return fmt.Sprintf("https://%s:%d", c.apiAddress(), c.Ports["kube-apiserver"])
}

// choosePorts asks the kernel for free ports. All listeners stay open until
// the last port is known, so that no port is handed out twice.
func (c *config) choosePorts(names ...string) error {
	for _, name := range names {
		if c.Ports[name] != 0 {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("no free port for %s: %w", name, err)
		}
		defer listener.Close()
		c.Ports[name] = listener.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// writeFile replaces a file in one step: a reader, or a crash, never sees half.
func writeFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(part, content, mode); err != nil {
		return err
	}
	return os.Rename(part, path)
}
