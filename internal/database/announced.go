package database

import (
	"net"
	"strconv"

	"skerry/internal/machine/host"
)

// Published is a database whose members can be known by another address than they listen
// at (host.Published): in containers whose ports are published, or behind a balancer.
// It binds to host.Listen, names members by Reach, and gives clients Env.Contact where that
// is set.
type Published interface {
	// Ports are those that members of a cluster of so many nodes listen on.
	Ports(nodes int, options Options) (Ports, error)
}

// Ports of a database's members.
type Ports struct {
	// All are what clients, other members and tools connect to, the clients' first.
	All []int
	// Fixed says that members tell each other and clients the numbers that they listen at: a
	// port cannot be published as another one.
	Fixed bool
}

// PeerAddr is where others reach a server that listens on a port of a host: "address:port".
func PeerAddr(h host.Host, port int) string {
	return net.JoinHostPort(h.Addr(), strconv.Itoa(host.Port(h, port)))
}

// LocalAddr is where a server that listens on a port of a host is reached from that host.
func LocalAddr(h host.Host, port int) string {
	return net.JoinHostPort(host.Listen(h), strconv.Itoa(port))
}

// Contacts are the addresses that clients are given: those of a service for all members,
// where there is one, else the members'.
func (e Env) Contacts(port int, members []string) []string {
	if e.Contact != nil {
		if all := e.Contact(port); len(all) > 0 {
			return all
		}
	}
	return members
}
