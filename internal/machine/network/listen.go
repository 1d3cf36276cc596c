package network

import (
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
)

// Listening tells whether a program listens on a TCP port of the node's address.
func (n Node) Listening(port int) (bool, error) {
	err := netns.Do(n.Netns, func() error {
		listener, err := net.Listen("tcp4", netip.AddrPortFrom(n.Addr, uint16(port)).String())
		if err != nil {
			return err
		}
		return listener.Close()
	})
	if errors.Is(err, unix.EADDRINUSE) {
		return true, nil
	}
	return false, err
}
