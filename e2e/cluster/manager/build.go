package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	helmVersion = "v3.22.0"
	kwokVersion = "v0.8.0"
	valeVersion = "v3.21.0"
	// The module of Prometheus 3.16.0.
	prometheusVersion = "v0.316.0"
)

// Without C a binary is static and needs no C compiler.
const withoutC, withC = "CGO_ENABLED=0", "CGO_ENABLED=1"

// toolModules are the programs that their own modules can install.
var toolModules = map[string]struct{ module, version, cgo, tags, guess string }{
	"helm": {"helm.sh/helm/v3/cmd/helm", helmVersion, withoutC, "", "about 3 min"},
	"kwok": {"sigs.k8s.io/kwok/cmd/kwok", kwokVersion, withoutC, "", "about 2 min"},
	// Its parsers of source files are written in C.
	"vale": {"github.com/vale-cli/vale/v3/cmd/vale", valeVersion, withC, "", "about 3 min"},
	// Rules need no service discovery, which would build the SDKs of all clouds.
	"promtool": {"github.com/prometheus/prometheus/cmd/promtool", prometheusVersion, withoutC, "remove_all_sd", "about 4 min"},
	// Without the tag builtinassets it has no web pages, which nothing here opens.
	"prometheus": {"github.com/prometheus/prometheus/cmd/prometheus", prometheusVersion, withoutC, "remove_all_sd", "about 3 min after promtool"},
}

// sourceFolder is e2e/cluster of the checkout; the wrapper script names it.
func sourceFolder() (string, error) {
	folder := os.Getenv("SHED_CLUSTER_DIR")
	if _, err := os.Stat(filepath.Join(folder, "kube", "go.mod")); folder == "" || err != nil {
		return "", fmt.Errorf("SHED_CLUSTER_DIR=%q is not e2e/cluster of a checkout: start this program through e2e/cluster/cluster", folder)
	}
	return folder, nil
}

func cacheFolder() string {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		base = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	return filepath.Join(base, "shed")
}

func toolFolder(name string) string {
	return filepath.Join(cacheFolder(), name+"-"+toolModules[name].version)
}

// ensureKube returns the path of the one binary that is all of Kubernetes.
func ensureKube(m minor) (string, error) {
	const at = "-X k8s.io/component-base/version."
	number := strings.Split(m.version, ".")
	flags := "-s -w " + at + "gitVersion=" + m.tag() + " " + at + "gitMajor=" + number[0] + " " +
		at + "gitMinor=" + number[1] + " " + at + "gitTreeState=clean"
	binary, err := kubeProgram.ensure(m, "kubernetes "+m.tag(), "about 2900 packages in 6 min on 2 cores the first time",
		"build", "-v", "-trimpath", "-ldflags", flags)
	if err != nil {
		return "", err
	}
	// kubectl is the same file under another name.
	link := filepath.Join(filepath.Dir(binary), "bin", "kubectl")
	if _, err := os.Lstat(link); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return "", err
	}
	if err := os.Symlink(filepath.Join("..", filepath.Base(binary)), link); err != nil && !os.IsExist(err) {
		return "", err
	}
	return binary, nil
}

// ensureJobs returns the path of this minor's own end-to-end suite of batch/v1 Job.
func ensureJobs(m minor) (string, error) {
	return jobsProgram.ensure(m, "the Job suite of "+m.tag(), "about 2 min on 2 cores the first time",
		"test", "-c", "-trimpath", "-ldflags", "-s -w")
}

func ensureTool(name string) (string, error) {
	tool, ok := toolModules[name]
	if !ok {
		return "", usagef("unknown tool %q: known tools are helm, kwok, vale, promtool, prometheus, kube and jobs", name)
	}
	binary := filepath.Join(toolFolder(name), name)
	return binary, ensureBuilt(binary, name+" "+tool.version, tool.guess, func(part string) *exec.Cmd {
		// `go install` names the file itself, so it gets a folder of its own,
		// and the shell moves the file to where the caller expects it.
		cmd := exec.Command("sh", "-c", `go install -trimpath -tags "$4" -ldflags "-s -w" "$1" && mv "$GOBIN/$2" "$3" && rmdir "$GOBIN"`,
			"sh", tool.module+"@"+tool.version, name, part, tool.tags)
		cmd.Env = append(os.Environ(), tool.cgo, "GOBIN="+part+".d")
		cmd.Dir = "/"
		return cmd
	})
}

// ensureBuilt builds into a file next to the final one and renames it, under a lock, so that concurrent callers build once and none sees half a binary.
func ensureBuilt(binary, what, guess string, command func(part string) *exec.Cmd) error {
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("the Go toolchain is missing: install Go 1.26 or later and put it on PATH")
	}
	lock, err := lockFile(filepath.Dir(binary)+".lock", "another process is building "+what+"; waiting for it")
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return err
	}
	leftovers, _ := filepath.Glob(binary + ".part-*") // of builders that were killed
	for _, path := range leftovers {
		os.RemoveAll(path)
	}
	part := fmt.Sprintf("%s.part-%d", binary, os.Getpid())
	cmd := command(part)
	if err := runWithProgress(cmd, what, guess); err != nil {
		return err
	}
	return os.Rename(part, binary)
}

// buildLog is the output of the go command. With -v it names each package that it compiles.
type buildLog struct {
	mutex             sync.Mutex
	text              strings.Builder
	modules, packages int
}

func (l *buildLog) Write(bytes []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, line := range strings.SplitAfter(string(bytes), "\n") {
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			l.modules++
		case strings.HasSuffix(line, "\n") && !strings.ContainsAny(line, " \t"):
			l.packages++
		}
	}
	return l.text.Write(bytes)
}

// progress says how far the build is, as far as its output says so.
func (l *buildLog) progress() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case l.packages > 0:
		return fmt.Sprintf(", %d packages compiled", l.packages)
	case l.modules > 0:
		return fmt.Sprintf(", %d modules downloaded", l.modules)
	default:
		return ""
	}
}

func runWithProgress(cmd *exec.Cmd, what, guess string) error {
	var log buildLog
	cmd.Stdout, cmd.Stderr = &log, &log
	began := time.Now()
	say("building %s (%s)", what, guess)
	defer dieWithUs(cmd)() // the next builder must not meet it
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		elapsed := func() int { return int(time.Since(began).Seconds()) }
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("building %s failed after %d s: %v\n%s", what, elapsed(), err, lastLines(log.text.String(), 30))
			}
			say("built %s in %d s", what, elapsed())
			return nil
		case <-ticker.C:
			say("building %s … %d s%s (%s)", what, elapsed(), log.progress(), guess)
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

func runTool(args []string) error {
	if len(args) != 1 {
		return usagef("usage: cluster tool helm|kwok|vale|promtool|prometheus|kube|jobs")
	}
	ensure := func() (string, error) { return ensureTool(args[0]) }
	if ofMinor := map[string]func(minor) (string, error){"kube": ensureKube, "jobs": ensureJobs}[args[0]]; ofMinor != nil {
		m, _, err := requestedMinor()
		if err != nil {
			return err
		}
		ensure = func() (string, error) { return ofMinor(m) }
	}
	path, err := ensure()
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
