package host

import (
	"fmt"
	"time"
)

// LimitCPU changes the quota of the node's processes to so many cores.
func (n *Node) LimitCPU(cores float64) error {
	g, err := n.controlGroup()
	if err == nil && g == nil {
		err = ErrNoGroup
	}
	if err == nil {
		err = g.LimitCPU(cores)
	}
	if err != nil {
		return fmt.Errorf("limit CPU of %s: %w", n.spec.Name, err)
	}
	return nil
}

// Used is the processor time that the node used and that its quota held back.
func (n *Node) Used() (used, throttled time.Duration, err error) {
	u, err := n.used()
	return u.CPU, u.Throttled, err
}
