// Only marks the module. Builds use VERSION/go.mod, which `e2e/cluster/cluster modules` generates.
module shed.dev/e2e/cluster/kube
