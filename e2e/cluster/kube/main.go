// Command kube is every server and client of a Kubernetes cluster in one
// binary: the first argument names the component, the rest is handed to it
// unchanged. One binary means one link step (most of the code is shared) and
// one file to cache.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// components makes a command only when it is asked for: each constructor
// registers flags and feature gates, which must not meet in one process.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 newKubeletCommand, // differs between minors
}

func main() {
	// A link named kubectl in a bin folder makes the same file the client.
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(runKubectl())
	}
	if len(os.Args) < 2 {
		usage()
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	switch {
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "kubectl":
		os.Exit(runKubectl())
	case components[name] != nil:
		os.Exit(cli.Run(components[name]()))
	default:
		usage()
	}
}

func runKubectl() int {
	command := kubectl.NewDefaultKubectlCommand()
	if err := cli.RunNoErrOutput(command); err != nil {
		// Prints the message and ends the process with kubectl's exit code.
		kubectlutil.CheckErr(err)
	}
	return 0
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: kube etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|kube-proxy|kubectl [FLAGS]")
	os.Exit(2)
}
