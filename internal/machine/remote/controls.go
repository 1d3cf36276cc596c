package remote

import (
	"context"
	"time"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine/host"
	"skerry/internal/machine/wire"
)

var _ host.Controls = (*node)(nil)

func (n *node) control(ctx context.Context, c wire.Control) error {
	return tell(ctx, n.m, "/host/control", n.of, c)
}

// Freeze implements host.Controls.
func (n *node) Freeze(ctx context.Context) error {
	return n.control(ctx, wire.Control{Do: wire.Freeze})
}

// Thaw implements host.Controls.
func (n *node) Thaw() error { return n.control(context.Background(), wire.Control{Do: wire.Thaw}) }

// MountDisk implements host.Controls.
func (n *node) MountDisk(bytes int64) error {
	return n.control(context.Background(), wire.Control{Do: wire.MountDisk, Bytes: bytes})
}

// FillDisk implements host.Controls.
func (n *node) FillDisk() error {
	return n.control(context.Background(), wire.Control{Do: wire.FillDisk})
}

// FreeDisk implements host.Controls.
func (n *node) FreeDisk() error {
	return n.control(context.Background(), wire.Control{Do: wire.FreeDisk})
}

// LimitDisk implements host.Controls.
func (n *node) LimitDisk(l cgroup.DiskLimit) error {
	return n.control(context.Background(), wire.Control{Do: wire.LimitDisk, Disk: l})
}

// LimitCPU implements host.Controls.
func (n *node) LimitCPU(cores float64) error {
	return n.control(context.Background(), wire.Control{Do: wire.LimitCPU, Cores: cores})
}

// Used implements host.Controls.
func (n *node) Used() (used, throttled time.Duration, err error) {
	u, err := n.Usage()
	return u.CPU, u.Throttled, err
}
