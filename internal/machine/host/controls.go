package host

import (
	"context"
	"time"

	"skerry/internal/kernel/cgroup"
)

// Controls is a host that what happens in an experiment can be done to. Nodes have it, wherever
// their machine is; Node says what each does.
type Controls interface {
	Freeze(ctx context.Context) error
	Thaw() error
	MountDisk(bytes int64) error
	FillDisk() error
	FreeDisk() error
	LimitDisk(l cgroup.DiskLimit) error
	LimitCPU(cores float64) error
	Used() (used, throttled time.Duration, err error)
}

var _ Controls = (*Node)(nil)

// Ahead implements Host: a node of this machine has its clock.
func (n *Node) Ahead() time.Duration { return 0 }
