#!/bin/bash
# Proves what README.md promises, on a cluster of its own next to any other.
# Needs root and takes one to two minutes once everything is built.
# shellcheck disable=SC2016 # what is in single quotes is for another shell
set -u

here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
export SHED_CLUSTER_STATE=$scratch/cluster
id=$(printf %s "$SHED_CLUSTER_STATE" | sha256sum | cut -c1-6)
cluster=$here/cluster
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shed
passed=0
failed=0

check() { # check "what is promised" COMMAND...
    local what=$1
    shift
    if "$@" >"$scratch/output" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $what"
    else
        failed=$((failed + 1))
        echo "FAIL  $what"
        sed 's/^/      /' "$scratch/output" | tail -15
    fi
}

# Tries a command until it succeeds or the seconds are over.
within() { # within SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

not() { ! "$@"; }

refused_with() { # refused_with TEXT COMMAND...: it fails and prints the text
    local text=$1 said
    shift
    if said=$("$@" 2>&1); then return 1; fi
    echo "$said"
    [[ $said == *"$text"* ]]
}

# --- what must look the same before `up` and after `down` -------------------

machine() {
    iptables-save 2>/dev/null | grep -v '^[#:]'
    ip -brief link | awk '{print $1}' | grep "shed-$id"
    ip route | grep "shed-$id"
    cat /proc/sys/net/ipv4/ip_forward /proc/sys/vm/overcommit_memory \
        /proc/sys/kernel/panic /proc/sys/kernel/panic_on_oops
}

our_cgroups() { find /sys/fs/cgroup -maxdepth 3 -type d -name "shed-$id-*" 2>/dev/null; }

# Processes by their arguments and cgroup. A zombie does not count: it has finished and waits for process 1, not for us.
our_processes() {
    local process command
    for process in /proc/[0-9]*; do
        {
            grep -q '^State:.Z' "$process/status" && continue
            command=$(tr '\0' ' ' <"$process/cmdline")
            if [[ $command == *"$SHED_CLUSTER_STATE/"* || $command == *"/run/shed-$id/"* ]] ||
                grep -q "shed-$id-" "$process/cgroup"; then
                echo "${process#/proc/} ${command:0:90}"
            fi
        } 2>/dev/null # it may end while we look
    done
}

none() { # none COMMAND: succeeds if it prints nothing
    local found
    found=$("$@")
    [ -z "$found" ] || { echo "left: $found"; return 1; }
}

our_mounts() { grep -E " ($SHED_CLUSTER_STATE|/run/shed-$id)" /proc/mounts; }

our_files() {
    find "$SHED_CLUSTER_STATE" "/run/shed-$id" -maxdepth 1 2>/dev/null
    find /var/lib/cni -name "shed-$id-*" 2>/dev/null
    find /var/log/containers -lname "$SHED_CLUSTER_STATE/*" 2>/dev/null
    local socket
    for socket in $shim_sockets; do
        [ ! -e "$socket" ] || echo "$socket"
    done
}

remember_sockets() {
    shim_sockets+=" "$(cat "/run/shed-$id"/*/state/io.containerd.runtime.v2.task/*/*/address 2>/dev/null | sed 's|unix://||g')
}
shim_sockets=

nothing_left() { # nothing_left "after what"
    check "$1: no process is left" none our_processes
    check "$1: no mount is left" none our_mounts
    check "$1: no cgroup is left" none our_cgroups
    check "$1: no file is left" none our_files
    machine >"$scratch/after"
    check "$1: links, routes, iptables and kernel settings are as before" \
        diff "$scratch/before" "$scratch/after"
}

# --- the pieces of the tests -------------------------------------------------

pod() { # pod NAME NODE ARGS...: starts a pod of the test image on a node
    local name=$1 node=$2
    shift 2
    kubectl run "$name" --image=localhost/busybox:test --image-pull-policy=IfNotPresent --restart=Never \
        --overrides="{\"spec\":{\"nodeName\":\"$node\",\"terminationGracePeriodSeconds\":0}}" -- "$@"
}

all_ready() { [ "$(kubectl get nodes --no-headers | grep -cw Ready)" = 3 ]; }

pod_ip() { kubectl get pod "$1" -o jsonpath='{.status.podIP}'; }

host_reaches() { timeout 3 bash -c "exec 3<>/dev/tcp/$1/$2"; }

pod_reaches() { kubectl exec "$1" -- sh -c "nc -w 3 $2 $3 </dev/null"; }

# The test image has no TLS client that works, so what the apiserver answers to
# plain HTTP must do.
pod_reaches_apiserver() {
    kubectl exec "$1" -- sh -c \
        'printf "GET / HTTP/1.0\r\n\r\n" | nc -w 3 $KUBERNETES_SERVICE_HOST 443 | grep -q "HTTP request to an HTTPS server"'
}

# Milliseconds a fixed piece of work takes in a pod.
work() {
    local began
    began=$(date +%s%N)
    kubectl exec "$1" -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' || return
    echo $((($(date +%s%N) - began) / 1000000))
}

slowed_enough() {
    local healthy slowed
    healthy=$(work web2) && slowed=$(work web1) || return
    echo "      the same work: ${slowed} ms on the slowed node, ${healthy} ms on a healthy one" >&3
    [ "$slowed" -gt $((healthy * 3)) ]
}
exec 3>&1

same_processes() { [ "$(cat "$SHED_CLUSTER_STATE"/pids/* | sort)" = "$recorded" ]; }

quick_up() {
    local began
    began=$(date +%s%N)
    "$cluster" up || return
    [ $((($(date +%s%N) - began) / 1000000)) -lt 2000 ]
}

kill_component() { # kill_component NAME: kill -9 by the recorded process id
    kill -9 "$(cut -d' ' -f1 "$SHED_CLUSTER_STATE/pids/$1")"
}

# Runs a command as a user with no rights, for a cluster of fake nodes.
fake=$scratch/nobody/state
as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$scratch/nobody" \
        XDG_CACHE_HOME="$scratch/nobody/cache" SHED_CLUSTER_STATE="$fake" \
        KUBECONFIG="$fake/kubeconfig" PATH="$(echo "$scratch"/nobody/cache/shed/kube-*/bin):$PATH" "$@"
}

fake_job() { # fake_job NAME MILLISECONDS EXIT_CODE CONDITION
    local began
    began=$(date +%s%N)
    as_nobody kubectl apply -f - <<EOF || return
apiVersion: batch/v1
kind: Job
metadata: {name: $1}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {shed.dev/kwok-run-ms: "$2", shed.dev/kwok-exit-code: "$3"}}
    spec:
      restartPolicy: Never
      initContainers: [{name: sidecar, image: none, restartPolicy: Always}]
      containers: [{name: main, image: none}, {name: second, image: none}]
EOF
    as_nobody kubectl wait --for=condition="$4" "job/$1" --timeout=30s || return
    [ $((($(date +%s%N) - began) / 1000000)) -ge "$2" ]
}

finished_containers() {
    local at=state.terminated.finishedAt
    as_nobody kubectl get pods --selector="job-name=$1" --output=jsonpath="
        {.items[0].status.containerStatuses[*].$at} {.items[0].status.initContainerStatuses[*].$at}" | wc -w
}

# Starts an `up` and kills it -9 as soon as a file or folder has appeared.
interrupt_up() {
    "$cluster" up >"$scratch/up.log" 2>&1 &
    local up=$!
    within 60 test -e "$1" || return 1
    kill -9 "$up" 2>/dev/null
    wait "$up" 2>/dev/null
    return 0
}

# --- the tests ---------------------------------------------------------------

[ "$(id -u)" = 0 ] || { echo "test.sh needs root: real nodes do" >&2; exit 2; }
trap '"$cluster" down >/dev/null 2>&1; rm -rf "$scratch"' EXIT
machine >"$scratch/before"

check "up" "$cluster" up --nodes real
eval "$("$cluster" env)"
check "three nodes are Ready" all_ready
check "status says that all is well" "$cluster" status
version=$("$cluster" status | sed -n 's/.*Kubernetes \(v[0-9.]*\),.*/\1/p')
check "kubectl and the apiserver say $version" \
    bash -c '[ "$(kubectl version | grep -c "$1")" = 2 ]' - "${SHED_KUBERNETES:-$version}"
check "another minor is refused on a cluster that is up" refused_with "made with SHED_KUBERNETES=${version#v}" \
    env SHED_KUBERNETES="$([ "$version" = v1.33.13 ] && echo 1.34.4 || echo 1.33.13)" "$cluster" up
check "a minor that is not listed is refused with the list" refused_with "1.33.13, 1.34.4" \
    env SHED_KUBERNETES=1.31.0 "$cluster" up

for n in 1 2 3; do
    check "a pod runs on n$n" pod "web$n" "n$n" sh -c 'echo started; mkdir /tmp/www; echo hello >/tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www'
done
check "the pods become Ready" kubectl wait --for=condition=Ready pod --all --timeout=60s
check "logs work" bash -c '[ "$(kubectl logs web1)" = started ]'
check "exec works" bash -c '[ "$(kubectl exec web2 -- cat /tmp/www/index.html)" = hello ]'
check "a pod reaches the apiserver through the service address" within 20 pod_reaches_apiserver web3
for n in 1 2 3; do
    check "the host reaches the pod on n$n" within 10 host_reaches "$(pod_ip "web$n")" 8080
done
check "a pod on n1 reaches a pod on n2" within 10 pod_reaches web1 "$(pod_ip web2)" 8080
check "a pod on n3 reaches a pod on n1" within 10 pod_reaches web3 "$(pod_ip web1)" 8080
kubectl expose pod web2 --port=80 --target-port=8080 >/dev/null
service=$(kubectl get service web2 -o jsonpath='{.spec.clusterIP}')
check "a pod reaches a pod through a service" within 20 pod_reaches web1 "$service" 80
check "the host reaches a pod through a service" within 20 host_reaches "$service" 80
check "the audit log is written" test -s "$SHED_CLUSTER_STATE/audit.log"
check "PodSecurity admission is on" bash -c '
    kubectl create namespace strict && kubectl label namespace strict pod-security.kubernetes.io/enforce=restricted &&
    ! kubectl -n strict run bad --image=localhost/busybox:test'

recorded=$(cat "$SHED_CLUSTER_STATE"/pids/* | sort)
check "a second up ends within 2 s" quick_up
check "and restarts nothing" same_processes
check "up refuses to change the number of nodes" not "$cluster" up --count 5

check "slow n1 0.1" "$cluster" slow n1 0.1
check "n1 is at least three times as slow as n2" slowed_enough
check "a pod with a CPU limit within the cap starts on the slowed node" bash -c '
    kubectl apply -f - <<EOF && kubectl wait --for=jsonpath={.status.phase}=Succeeded pod/limited --timeout=60s
apiVersion: v1
kind: Pod
metadata: {name: limited}
spec:
  nodeName: n1
  restartPolicy: Never
  containers:
  - {name: main, image: localhost/busybox:test, imagePullPolicy: IfNotPresent, command: ["true"], resources: {limits: {cpu: 50m, memory: 32Mi}}}
EOF'
check "status shows the slowed node" bash -c '"$0" status | grep -q "n1 .*slowed to 0.0"' "$cluster"
check "slow n1 1 lifts the cap" bash -c '"$0" slow n1 1 && ! "$0" status | grep -q slowed' "$cluster"
for wrong in "n9 0.5" "n1 2" "n1 0" "n1 x"; do
    # shellcheck disable=SC2086 # two arguments
    check "slow $wrong is refused" not "$cluster" slow $wrong
done

archives=("$cache"/images-*/busybox.tar)
check "load imports an image" "$cluster" load "${archives[0]}"
check "loading an image again imports nothing" bash -c '"$0" load "$1" 2>&1 | grep -q "has it already"' "$cluster" "${archives[0]}"
check "load refuses what is no image" not "$cluster" load "$here/README.md"

remember_sockets
for component in etcd kubelet-n1 containerd-n2 kube-proxy; do
    kill_component "$component"
done
check "status reports what was killed" not "$cluster" status
check "up repairs it" "$cluster" up
check "the pods still run" kubectl wait --for=condition=Ready pod/web1 pod/web2 pod/web3 --timeout=60s

remember_sockets
ip link del "shed-$id"
check "status reports that the network is gone" not "$cluster" status
check "up makes it again" "$cluster" up
check "a pod runs after that" bash -c '
    kubectl run later --image=localhost/busybox:test --image-pull-policy=IfNotPresent --restart=Never -- true &&
    kubectl wait --for=jsonpath={.status.phase}=Succeeded pod/later --timeout=60s'
for component in containerd-n1 kubelet-n2 etcd; do
    kill_component "$component"
done
check "down, after a kill -9 of containerd, a kubelet and etcd" "$cluster" down
nothing_left "after down"
check "a second down is no error" "$cluster" down

for moment in cluster.json "/run/shed-$id/netns" pids/etcd nodes/n2/loaded pids/kubelet-n2; do
    case $moment in /*) mark=$moment ;; *) mark=$SHED_CLUSTER_STATE/$moment ;; esac
    check "up killed -9 at ${moment##*/}" interrupt_up "$mark"
    check "down after that" "$cluster" down
    nothing_left "after up was killed at ${moment##*/}"
done

check "up after all that" "$cluster" up
check "kwok is built" "$cluster" tool kwok
mkdir -p "$scratch/nobody/cache/shed"
cp -r "$cache"/kube-*/ "$cache"/kwok-*/ "$cache"/manager-*/ "$scratch/nobody/cache/shed/"
chmod 711 "$scratch"
chown -R 65534:65534 "$scratch/nobody"
check "fake nodes run next to it, without root" as_nobody "$cluster" up --count 3
check "a fake job runs for as long as its annotation says" fake_job good 1500 0 Complete
check "all its containers say when they ended, the sidecar too" \
    bash -c '[ "$1" = 3 ]' - "$(finished_containers good)"
check "a fake job fails with the exit code of its annotation" fake_job bad 200 7 Failed
check "the containers of a fake pod have that exit code" bash -c '[ "$1" = 7 ]' - "$(as_nobody kubectl get pods \
    --selector=job-name=bad --output=jsonpath='{.items[0].status.containerStatuses[0].state.terminated.exitCode}')"
check "fake nodes go alone" as_nobody "$cluster" down
check "and leave no file" test ! -e "$fake"
check "the real nodes are untouched" "$cluster" status
check "the last down" "$cluster" down
nothing_left "at the end"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
