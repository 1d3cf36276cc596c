package lab

import (
	"fmt"
	"hash/fnv"
	"net"
	"strings"
)

// perNet is how many addresses of 10.77.x.0/24 are used: some software takes .0 and .255
// for something else.
const (
	perNet   = 254
	maxNodes = perNet * 256
)

// address is the IPv4 address of the i-th node.
func address(i int) net.IP {
	return net.IPv4(10, 77, byte(i/perNet), byte(i%perNet+1)).To4()
}

// deviceName names the device of the i-th link, the same at both ends. It is unique in
// the lab, since engines may keep the other half of it in a namespace of their own.
func deviceName(i int) string { return fmt.Sprintf("lk%d", i) }

// tunnelName names the device that encrypts the i-th link.
func tunnelName(i int) string { return fmt.Sprintf("wg%d", i) }

// seedOf gives each link its own sequence of random choices.
func seedOf(seed uint64, id string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", seed, id)
	return h.Sum64()
}

// hosts is the text of /etc/hosts on the nodes.
func hosts(nodes []nodeState) []byte {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s %s\n", n.Addr, n.Name)
	}
	return []byte(b.String())
}

func hostNet(ip net.IP) *net.IPNet { return &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)} }
