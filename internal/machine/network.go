package machine

import (
	"net/netip"
)

// TunnelEnd is one end of a tunnel over a link.
type TunnelEnd struct {
	Link   string     `json:"link"`
	Node   string     `json:"node"`
	Device string     `json:"device"` // which is made
	Addr   netip.Addr `json:"addr"`   // of the end on the link
}

// Device is how a device of a node is to stand.
type Device struct {
	Node string `json:"node"`
	Name string `json:"name"`
	// Addrs are added; packets leave with the first.
	Addrs []netip.Prefix `json:"addrs"`
	// MTU in bytes is set where it is not 0.
	MTU int `json:"mtu,omitempty"`
	// Up sets the device up, with a link-local address where it has IPv6.
	Up bool `json:"up,omitempty"`
}

// Route is the way from a node to a neighbour.
type Route struct {
	Node   string     `json:"node"`
	To     netip.Addr `json:"to"`
	Device string     `json:"device"`
}

// Cable is the devices of a link at a node, the lower one first, and the routes over them.
type Cable struct {
	Node    string   `json:"node"`
	Devices []string `json:"devices"`
	Routes  []Route  `json:"routes,omitempty"`
}

// TUN is a device of a node that a program there reads packets from and writes them to.
type TUN struct {
	Node string `json:"node"`
	Name string `json:"name"`
	MTU  int    `json:"mtu"` // in bytes
	// To are the addresses that the node's packets for are sent to it.
	To netip.Prefix `json:"to"`
}
