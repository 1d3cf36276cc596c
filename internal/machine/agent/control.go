package agent

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// control does something to a node.
func control(ctx context.Context, h host.Host, c rpc.Control) error {
	n, ok := h.(host.Controls)
	if !ok {
		return fmt.Errorf("%s %s: %w", c.Do, h.Name(), errors.ErrUnsupported)
	}
	switch c.Do {
	case rpc.Freeze:
		return n.Freeze(ctx)
	case rpc.Thaw:
		return n.Thaw()
	case rpc.MountDisk:
		return n.MountDisk(c.Bytes)
	case rpc.FillDisk:
		return n.FillDisk()
	case rpc.FreeDisk:
		return n.FreeDisk()
	case rpc.LimitDisk:
		return n.LimitDisk(c.Disk)
	case rpc.LimitCPU:
		return n.LimitCPU(c.Cores)
	}
	return fmt.Errorf("%s %s: %w", c.Do, h.Name(), errors.ErrUnsupported)
}
