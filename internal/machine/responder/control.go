package responder

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/machine/host"
	"skerry/internal/machine/wire"
)

// control does something to a node.
func control(ctx context.Context, h host.Host, c wire.Control) error {
	n, ok := h.(host.Controls)
	if !ok {
		return fmt.Errorf("%s %s: %w", c.Do, h.Name(), errors.ErrUnsupported)
	}
	switch c.Do {
	case wire.Freeze:
		return n.Freeze(ctx)
	case wire.Thaw:
		return n.Thaw()
	case wire.MountDisk:
		return n.MountDisk(c.Bytes)
	case wire.FillDisk:
		return n.FillDisk()
	case wire.FreeDisk:
		return n.FreeDisk()
	case wire.LimitDisk:
		return n.LimitDisk(c.Disk)
	case wire.LimitCPU:
		return n.LimitCPU(c.Cores)
	}
	return fmt.Errorf("%s %s: %w", c.Do, h.Name(), errors.ErrUnsupported)
}
