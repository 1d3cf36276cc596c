package lab

import (
	"fmt"
	"hash/fnv"
	"net/netip"
)

// perNet is how many addresses of 10.77.x.0/24 are used: some software takes .0 and .255
// for something else.
const (
	perNet   = 254
	maxNodes = perNet * 256
)

// address is the IPv4 address of the i-th node.
func address(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte(i / perNet), byte(i%perNet + 1)})
}

// Networks of addresses, two for each link: linkNet those of the links' devices, 10.80.0.0
// to 10.95.255.255, and tunnelNet those of the tunnels', 10.96.0.0 to 10.111.255.255.
const (
	linkNet   = 10<<24 | 80<<16
	tunnelNet = 10<<24 | 96<<16
)

// endAddresses are those of the two ends of the i-th link.
func endAddresses(net uint32, i int) (a, b netip.Addr) {
	n := net + 2*uint32(i)
	at := func(n uint32) netip.Addr {
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	return at(n), at(n + 1)
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
