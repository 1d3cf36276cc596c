package machine

import (
	"errors"
	"fmt"

	"skerry/internal/machine/host"
)

// Inside is a node of this machine, or a container of one: its network can be entered by a
// thread, which measuring needs, and it by this process.
type Inside interface {
	host.Inside
	// Exec replaces the calling process by a program on the node. It returns only when it
	// fails.
	Exec(c host.Command) error
}

// ErrOutside says that a node is on no machine that this process can enter it on.
var ErrOutside = errors.New("the node is not on this machine")

// Enter returns the node that h is, for work within its network; ErrOutside where it is on
// another machine.
func Enter(h host.Host) (Inside, error) {
	if in, ok := h.(Inside); ok {
		return in, nil
	}
	return nil, fmt.Errorf("%s: %w", h.Name(), ErrOutside)
}
