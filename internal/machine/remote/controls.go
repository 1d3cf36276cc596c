package remote

import (
	"context"
	"time"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

var _ host.Controls = (*node)(nil)

func (n *node) control(ctx context.Context, c rpc.Control) error {
	return tell(ctx, n.m, "/host/control", n.of, c)
}

// Freeze implements host.Controls.
func (n *node) Freeze(ctx context.Context) error {
	return n.control(ctx, rpc.Control{Do: rpc.Freeze})
}

// Thaw implements host.Controls.
func (n *node) Thaw() error { return n.control(context.Background(), rpc.Control{Do: rpc.Thaw}) }

// MountDisk implements host.Controls.
func (n *node) MountDisk(bytes int64) error {
	return n.control(context.Background(), rpc.Control{Do: rpc.MountDisk, Bytes: bytes})
}

// FillDisk implements host.Controls.
func (n *node) FillDisk() error {
	return n.control(context.Background(), rpc.Control{Do: rpc.FillDisk})
}

// FreeDisk implements host.Controls.
func (n *node) FreeDisk() error {
	return n.control(context.Background(), rpc.Control{Do: rpc.FreeDisk})
}

// LimitDisk implements host.Controls.
func (n *node) LimitDisk(l cgroup.DiskLimit) error {
	return n.control(context.Background(), rpc.Control{Do: rpc.LimitDisk, Disk: l})
}

// LimitCPU implements host.Controls.
func (n *node) LimitCPU(cores float64) error {
	return n.control(context.Background(), rpc.Control{Do: rpc.LimitCPU, Cores: cores})
}

// Used implements host.Controls.
func (n *node) Used() (used, throttled time.Duration, err error) {
	u, err := n.Usage()
	return u.CPU, u.Throttled, err
}
