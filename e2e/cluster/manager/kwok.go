package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
)

// kwok plays the kubelet of every fake node: it moves pods through the stages
// in e2e/cluster/kwok/ and keeps the nodes' leases alive.
func (c *config) kwok() component {
	source, _ := sourceFolder() // checked when the binaries were built
	port := c.Ports["kwok"]
	return component{
		name: "kwok",
		args: []string{filepath.Join(toolFolder("kwok"), "kwok"),
			"--kubeconfig=" + c.path("kubeconfig"),
			"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--config=" + filepath.Join(source, "kwok", "stages.yaml"),
			"--config=" + filepath.Join(source, "kwok", "options.yaml"),
			fmt.Sprintf("--server-address=127.0.0.1:%d", port),
			"--node-lease-duration-seconds=40",
		},
		health: fmt.Sprintf("http://127.0.0.1:%d/healthz", port),
		port:   port,
	}
}

// makeFakeNodes registers the nodes; kwok makes them Ready.
func (c *config) makeFakeNodes() error {
	client, err := c.client()
	if err != nil {
		return err
	}
	names := make(chan string)
	go func() {
		defer close(names)
		for _, name := range c.nodes() {
			names <- name
		}
	}()
	failures := make(chan error, c.Count)
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for name := range names {
				if err := c.call(client, http.MethodPost, "/api/v1/nodes", c.fakeNode(name), nil); err != nil {
					failures <- fmt.Errorf("register the fake node %s: %w", name, err)
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	return <-failures // nil without failures
}

// fakeNode has no taint: with fake nodes only, pods should need no toleration.
func (c *config) fakeNode(name string) map[string]any {
	resources := map[string]string{"cpu": "32", "memory": "256Gi", "pods": fmt.Sprint(c.MaxPods)}
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]string{"kwok.x-k8s.io/node": "fake"},
			"labels": map[string]string{
				"kubernetes.io/hostname": name,
				"kubernetes.io/os":       "linux",
				"type":                   "kwok",
			},
		},
		"status": map[string]any{"allocatable": resources, "capacity": resources},
	}
}
