package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// execCommand is the hidden sub-command through which every component starts.
const execCommand = "__exec"

// component is one long-running process of the cluster.
type component struct {
	name   string
	args   []string // args[0] is the program
	inNet  bool     // runs in the cluster's own network namespace
	health string   // URL that answers 200 when it works; "" means alive is enough
	port   int      // for `status`; 0 if it listens on a socket only
}

// start launches a component that is not running. The child is this program
// again (runExec below), which records itself and then becomes the component:
// there is no moment at which a component runs unrecorded. The child holds the
// cluster's lock until then, so that a `down` right after a killed `up` waits
// for the record instead of missing the process.
func (c *config) start(comp component, lock *os.File) error {
	if _, alive := c.pid(comp.name); alive {
		return nil
	}
	// The record of an earlier process would look like the end of this one.
	if err := os.Remove(c.pidFile(comp.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(c.path("logs"), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(c.logFile(comp.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()

	args := []string{execCommand, c.pidFile(comp.name), c.trackingCgroup(), "--"}
	if comp.inNet {
		args = append(args, "nsenter", "--net="+c.netns(), "--")
	}
	cmd := exec.Command("/proc/self/exe", append(args, comp.args...)...)
	cmd.Dir = "/"
	cmd.Env = componentEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", comp.name, err)
	}
	go cmd.Wait() // collects it if it dies while we still run
	return nil
}

// componentEnv leaves out proxies: every address a component talks to is on
// this machine, and Go programs would send even those to a proxy.
func componentEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToLower(entry), "=")
		if !strings.HasSuffix(name, "_proxy") {
			env = append(env, entry)
		}
	}
	return env
}

// runExec is the child's side: __exec PIDFILE CGROUP -- PROGRAM ARGS...
func runExec(args []string) error {
	if len(args) < 4 || args[2] != "--" {
		return usagef("%s is for the manager itself", execCommand)
	}
	pidFile, cgroup, command := args[0], args[1], args[3:]
	syscall.CloseOnExec(3) // the cluster's lock
	if cgroup != "" {
		procs := filepath.Join(cgroup, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return err
		}
	}
	began, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	record := fmt.Sprintf("%d %s\n", os.Getpid(), began)
	if err := writeFile(pidFile, []byte(record), 0o644); err != nil {
		return err
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, command, os.Environ())
}

func (c *config) pidFile(name string) string { return c.path("pids", name) }

// pid reads a component's record. A pid alone would be a lie once the kernel
// gives the number to another process, so the start time must match as well.
func (c *config) pid(name string) (int, bool) {
	text, err := os.ReadFile(c.pidFile(name))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) != 2 {
		return 0, false
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0, false
	}
	began, err := startTime(pid)
	return pid, err == nil && began == fields[1]
}

// hasEnded says whether a component was recorded and runs no longer. One that was
// only just started is not recorded yet.
func (c *config) hasEnded(name string) bool {
	_, alive := c.pid(name)
	return !alive && fileExists(c.pidFile(name))
}

// startTime is field 22 of /proc/PID/stat, in clock ticks since boot. A zombie
// counts as gone.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the program's name in brackets and may hold spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d is gone", pid)
	}
	return fields[19], nil
}

// recorded lists the components that were ever started here.
func (c *config) recorded() []string {
	entries, _ := os.ReadDir(c.path("pids"))
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// killRecorded ends every recorded process and returns once all are gone.
// SIGKILL at once: nothing they could still write is kept.
func (c *config) killRecorded() error {
	return poll(20*time.Second, 10*time.Millisecond, func() error {
		var left []string
		for _, name := range c.recorded() {
			if pid, alive := c.pid(name); alive {
				syscall.Kill(pid, syscall.SIGKILL)
				left = append(left, fmt.Sprintf("%s (process %d)", name, pid))
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("still running: %s", strings.Join(left, ", "))
		}
		return nil
	})
}

// poll tries until it works or the time is over, and returns the last error.
func poll(limit, every time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(every)
	}
}

// run executes a helper program and puts what it said into the error.
func run(program string, args ...string) error {
	_, err := output(program, args...)
	return err
}

func output(program string, args ...string) (string, error) {
	return outputOf(exec.Command(program, args...))
}

func outputOf(cmd *exec.Cmd) (string, error) {
	var out, errText bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errText
	defer dieWithUs(cmd)()
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		said := strings.TrimSpace(errText.String() + out.String())
		return "", fmt.Errorf("%s: %v: %s", strings.Join(cmd.Args, " "), err, said)
	}
	return out.String(), err
}

// dieWithUs makes a helper exit when this program is killed: no other process knows
// of it. The kernel ties that wish to the thread that starts the child, so the
// thread is kept until the returned function is called.
func dieWithUs(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread
}
