package remote

import (
	"context"
	"time"

	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// node is a node of a part, or what a container is of one.
type node struct {
	m  *Machine
	of rpc.Of
	is rpc.Host
}

var (
	_ host.Host      = (*node)(nil)
	_ host.Published = (*container)(nil)
)

func (n *node) Name() string        { return n.is.Name }
func (n *node) Site() string        { return n.is.Site }
func (n *node) Addr() string        { return n.is.Addr }
func (n *node) Dir() string         { return n.is.Dir }
func (n *node) Files() files.System { return system{n.m, n.of} }

// Ahead implements host.Host.
func (n *node) Ahead() time.Duration { return time.Duration(n.m.ahead.Load()) }

// Usage implements host.Host.
func (n *node) Usage() (host.Usage, error) {
	return ask[host.Usage](context.Background(), n.m, "/host/usage", n.of, rpc.Nothing{})
}

// container is a container on a node.
type container struct {
	*node
	as machine.Container
}

// Listen implements host.Published.
func (c *container) Listen() string { return c.as.Listen.String() }

// Port implements host.Published.
func (c *container) Port(port int) int {
	if p, ok := c.as.Ports[port]; ok {
		return p
	}
	return port
}
