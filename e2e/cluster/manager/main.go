// Command manager starts, watches and removes a local Kubernetes cluster made
// of processes: no container engine, no virtual machine, no prebuilt binary.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const help = `cluster: a Kubernetes cluster of local processes, for shed's tests and demo

usage: cluster COMMAND [ARGUMENTS]

  up [--nodes real|kwok|auto] [--count N] [--max-pods N] [--no-job-controller]
     [--audit-pod-status]
                      start the cluster, or whatever of it is missing
  down                remove it: processes, mounts, network, cgroups, files
  status              one line per component and node; exit code 0 if all is well
  slow NODE FRACTION  cap a node at FRACTION of its even share of the CPU; 1 lifts the cap
  load ARCHIVE...     import OCI or docker image archives on every node
  kubeconfig          print the path of the administrator's kubeconfig
  env                 print lines for the shell to eval: KUBECONFIG and PATH
  tool helm|kwok|vale|promtool|prometheus|kube|jobs
                      build the tool if it is not cached, and print its path; kube is
                      all of Kubernetes in one program, jobs its end-to-end suite of Jobs
  logs COMPONENT      print the path and the end of a component's log
  modules [--check]   generate the Go modules of every Kubernetes minor, or compare them

examples:
  e2e/cluster/cluster up && eval "$(e2e/cluster/cluster env)" && kubectl get nodes
  e2e/cluster/cluster slow n2 0.2        # n2 now gets a fifth of its share
  e2e/cluster/cluster load shed.tar      # then use the image with imagePullPolicy: IfNotPresent
  SHED_CLUSTER_STATE=/tmp/second e2e/cluster/cluster up --nodes kwok --count 50
  SHED_KUBERNETES=1.37.2 SHED_CLUSTER_STATE=/tmp/newest e2e/cluster/cluster up

environment:
  SHED_KUBERNETES     the minor that up and tool use: %s
  SHED_CLUSTER_STATE  folder of this cluster's state; one folder is one cluster
                      (default: ${XDG_STATE_HOME:-~/.local/state}/shed/cluster)
  XDG_CACHE_HOME      builds are kept under its shed/ folder (default: ~/.cache)
`

// usageError is a mistake in how the command was called: exit code 2.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return usageError{fmt.Sprintf(format, args...)}
}

var commands = map[string]func(args []string) error{
	"up":         runUp,
	"down":       runDown,
	"status":     runStatus,
	"slow":       runSlow,
	"load":       runLoad,
	"kubeconfig": runKubeconfig,
	"env":        runEnv,
	"tool":       runTool,
	"logs":       runLogs,
	"modules":    runModules,
	execCommand:  runExec,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, help, supportedVersions())
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	if name != execCommand && asksForHelp(name, args) {
		fmt.Printf(help, supportedVersions())
		return
	}
	run, ok := commands[name]
	if !ok {
		fail(usagef("unknown command %q; run with --help for the list", name))
	}
	if err := run(args); err != nil {
		fail(err)
	}
}

func asksForHelp(name string, args []string) bool {
	for _, word := range append([]string{name}, args...) {
		if word == "--help" || word == "-h" || word == "help" {
			return true
		}
	}
	return false
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "cluster:", strings.TrimSpace(err.Error()))
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// say tells the user what goes on; results go to standard output, talk does not.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
