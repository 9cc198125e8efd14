module shed.dev/e2e/cluster/manager

go 1.26
