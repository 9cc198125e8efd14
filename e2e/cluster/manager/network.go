package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The nodes live in a network namespace of their own, joined to the host by
// one veth pair. The host gets one route, no iptables rule and no sysctl:
// kube-proxy's chains, the bridges and ip_forward exist in the namespace only
// and vanish with it, and two clusters can't see each other's.

func (c *config) netns() string { return c.runtime("netns") }

func (c *config) hostLink() string { return "shed-" + c.id }

// makeNetwork makes the namespace and the link. It is called with the host's
// lock held: the routing table is what tells clusters which address ranges are
// taken.
func (c *config) makeNetwork() error {
	if err := c.removeNetwork(); err != nil { // a half-made one
		return err
	}
	if err := c.chooseSubnet(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.runtime(), 0o700); err != nil {
		return err
	}
	if err := writeFile(c.netns(), nil, 0o600); err != nil { // what the mount covers
		return err
	}
	if err := run("unshare", "--net="+c.netns(), "true"); err != nil {
		return err
	}
	host := []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", c.hostLink(), c.netns()),
		fmt.Sprintf("addr add %s/24 dev %s", c.hostIP(), c.hostLink()),
		fmt.Sprintf("link set %s up", c.hostLink()),
	}
	inside := []string{"link set lo up", "link set eth0 up"}
	for i := range c.nodes() {
		inside = append(inside, fmt.Sprintf("addr add %s/24 dev eth0", c.nodeIP(i)))
	}
	inside = append(inside, "route add default via "+c.hostIP())
	if err := ipBatch(host, "ip"); err != nil {
		return err
	}
	if err := ipBatch(inside, "nsenter", "--net="+c.netns(), "ip"); err != nil {
		return err
	}
	if err := c.namespaceSettings(); err != nil {
		return err
	}
	// Last, because its presence is what networkUp takes as proof of the rest.
	return run("ip", "route", "add", c.wholeSubnet(), "via", c.nodeIP(0), "dev", c.hostLink())
}

func (c *config) networkUp() bool {
	routes, err := output("ip", "-4", "route", "show", c.wholeSubnet(), "dev", c.hostLink())
	if err != nil || strings.TrimSpace(routes) == "" {
		return false
	}
	return run("nsenter", "--net="+c.netns(), "true") == nil
}

func (c *config) namespaceSettings() error {
	inside := func(args ...string) error {
		return run("nsenter", append([]string{"--net=" + c.netns(), "--"}, args...)...)
	}
	// Services are translated before bridged packets are forwarded, which
	// needs both switches. The second is absent where br_netfilter is.
	script := "echo 1 > /proc/sys/net/ipv4/ip_forward; " +
		"echo 1 2>/dev/null > /proc/sys/net/bridge/bridge-nf-call-iptables || true"
	if err := inside("sh", "-c", script); err != nil {
		return err
	}
	// A service address without a service refuses at once. Otherwise a name
	// lookup (there is no cluster DNS) would hang until its timeout.
	return inside("iptables", "-w", "-A", "FORWARD", "-d", c.serviceSubnet(), "-j", "REJECT")
}

func ipBatch(lines []string, command ...string) error {
	cmd := exec.Command(command[0], append(command[1:], "-batch", "-")...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if _, err := outputOf(cmd); err != nil {
		return fmt.Errorf("set up the network: %w", err)
	}
	return nil
}

// removeNetwork undoes makeNetwork from whatever point it reached.
func (c *config) removeNetwork() error {
	// The kernel deletes the link too, in its own time, once the namespace is
	// gone: that it vanishes under us is no failure.
	err := poll(10*time.Second, 20*time.Millisecond, func() error {
		if _, err := net.InterfaceByName(c.hostLink()); err != nil {
			return nil
		}
		run("ip", "link", "del", c.hostLink())
		if _, err := net.InterfaceByName(c.hostLink()); err == nil {
			return fmt.Errorf("the link %s can't be deleted: try `ip link del %s`", c.hostLink(), c.hostLink())
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Unmounting drops the namespace once no process is in it.
	for syscall.Unmount(c.netns(), syscall.MNT_DETACH) == nil {
	}
	if err := os.Remove(c.netns()); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// chooseSubnet takes the first 10.x.0.0/16 that no route of the host touches.
func (c *config) chooseSubnet() error {
	routes, err := hostRoutes()
	if err != nil {
		return err
	}
	free := func(second int) bool {
		c.Net = second
		_, ours, _ := net.ParseCIDR(c.wholeSubnet())
		for _, route := range routes {
			if route.Contains(ours.IP) || ours.Contains(route.IP) {
				return false
			}
		}
		return true
	}
	if c.Net != 0 && free(c.Net) { // certificates already name these addresses
		return nil
	}
	if c.Net != 0 {
		return fmt.Errorf("the addresses %s of this cluster are routed elsewhere by now: run `cluster down`, then `up`", c.wholeSubnet())
	}
	for second := 211; second < 255; second++ {
		if free(second) {
			return c.save()
		}
	}
	c.Net = 0
	return fmt.Errorf("no free address range: all of 10.211.0.0/16 to 10.254.0.0/16 are routed on this host; remove a cluster with `cluster down`")
}

// hostRoutes reads the IPv4 routing table, without the default route.
func hostRoutes() ([]*net.IPNet, error) {
	file, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var routes []*net.IPNet
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 8 || fields[0] == "Iface" {
			continue
		}
		address, err1 := hex.DecodeString(fields[1])
		mask, err2 := hex.DecodeString(fields[7])
		if err1 != nil || err2 != nil || len(address) != 4 || len(mask) != 4 || binary.BigEndian.Uint32(mask) == 0 {
			continue
		}
		routes = append(routes, &net.IPNet{IP: littleEndian(address), Mask: net.IPMask(littleEndian(mask))})
	}
	return routes, scanner.Err()
}

// littleEndian undoes the byte order of /proc/net/route.
func littleEndian(b []byte) net.IP {
	out := make([]byte, 4)
	binary.BigEndian.PutUint32(out, binary.NativeEndian.Uint32(b))
	return out
}
