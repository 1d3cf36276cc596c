package remote

import (
	"context"
	"time"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// node is a node of a part, or what a container is of one.
type node struct {
	m  *Machine
	of rpc.Target
	is rpc.HostInfo
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

// ClockOffset implements host.Host.
func (n *node) ClockOffset() time.Duration { return time.Duration(n.m.ahead.Load()) }

// Usage implements host.Host.
func (n *node) Usage() (host.Usage, error) {
	return callResult[host.Usage](context.Background(), n.m, "/host/usage", n.of, rpc.Empty{})
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

var _ host.Controls = (*node)(nil)

func (n *node) control(ctx context.Context, c rpc.ControlRequest) error {
	return callEmpty(ctx, n.m, "/host/control", n.of, c)
}

// Freeze implements host.Controls.
func (n *node) Freeze(ctx context.Context) error {
	return n.control(ctx, rpc.ControlRequest{Action: rpc.Freeze})
}

// Thaw implements host.Controls.
func (n *node) Thaw() error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.Thaw})
}

// MountDisk implements host.Controls.
func (n *node) MountDisk(bytes int64) error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.MountDisk, Bytes: bytes})
}

// FillDisk implements host.Controls.
func (n *node) FillDisk() error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.FillDisk})
}

// FreeDisk implements host.Controls.
func (n *node) FreeDisk() error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.FreeDisk})
}

// LimitDisk implements host.Controls.
func (n *node) LimitDisk(l cgroup.DiskLimit) error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.LimitDisk, Disk: l})
}

// LimitCPU implements host.Controls.
func (n *node) LimitCPU(cores float64) error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.LimitCPU, Cores: cores})
}

// Used implements host.Controls.
func (n *node) Used() (used, throttled time.Duration, err error) {
	u, err := n.Usage()
	return u.CPU, u.Throttled, err
}
