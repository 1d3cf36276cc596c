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

// node is a node of a part; it is also embedded in container.
type node struct {
	m  *Machine
	of rpc.CallTarget
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

func (n *node) ClockOffset() time.Duration { return time.Duration(n.m.ahead.Load()) }

func (n *node) Usage() (host.Usage, error) {
	return callResult[host.Usage](context.Background(), n.m, "/host/usage", n.of, rpc.Empty{})
}

type container struct {
	*node
	as machine.Container
}

func (c *container) Listen() string { return c.as.Listen.String() }

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

func (n *node) Freeze(ctx context.Context) error {
	return n.control(ctx, rpc.ControlRequest{Action: rpc.Freeze})
}

func (n *node) Thaw() error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.Thaw})
}

func (n *node) MountDisk(bytes int64) error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.MountDisk, Bytes: bytes})
}

func (n *node) FillDisk() error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.FillDisk})
}

func (n *node) FreeDisk() error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.FreeDisk})
}

func (n *node) LimitDisk(l cgroup.DiskLimit) error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.LimitDisk, Disk: l})
}

func (n *node) LimitCPU(cores float64) error {
	return n.control(context.Background(), rpc.ControlRequest{Action: rpc.LimitCPU, Cores: cores})
}

func (n *node) Used() (used, throttled time.Duration, err error) {
	u, err := n.Usage()
	return u.CPU, u.Throttled, err
}
