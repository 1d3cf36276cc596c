package local

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
)

// claim keeps a UDP port from other labs, from when it is chosen until something listens on it:
//
//  1. Lab 1 finds a port free, and holds it by a socket.
//  2. What is to listen there, the kernel's WireGuard or a process, opens a socket of its own: that of lab 1 is
//     closed before.
//  3. Lab 2 chooses in between, finds the port free and takes it. Lab 1 does not come up.
//
// So who chooses a port has to have its name first, a socket without a file. Such names belong to a network namespace, as
// ports do, and end with their process.
type claim struct {
	name net.Listener
	udp  *net.UDPConn
	port int
}

// claimPort claims a port that no other lab has.
func claimPort() (*claim, error) {
	var err error
	for port := machine.FirstPort; port < machine.FirstPort+machine.Ports; port++ {
		c := &claim{port: port}
		if c.name, err = net.Listen("unix", fmt.Sprintf("@skerry-between-%d", port)); err == nil {
			if c.udp, err = net.ListenUDP("udp", &net.UDPAddr{Port: port}); err == nil {
				return c, nil
			}
			err = errors.Join(err, c.name.Close())
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	err = fmt.Errorf("take a UDP port for packets between machines: %w", err)
	return nil, advice.With(err, "labs between machines take one of %d to %d each", machine.FirstPort, machine.FirstPort+machine.Ports-1)
}

// open lets somebody listen on the port; other labs still keep away.
func (c *claim) open() error { return c.udp.Close() }

// close gives the claim up.
func (c *claim) close() error {
	err := c.udp.Close()
	if errors.Is(err, net.ErrClosed) { // open did that
		err = nil
	}
	return errors.Join(err, c.name.Close())
}
