package trial

import (
	"errors"
	"fmt"
	"strings"

	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
	"skerry/internal/topology/flavor"
)

// governorOf makes a governor of the nodes whose quota changes with time, nil for none, and
// tells whether every node is held to the flavor that it has. Setting up costs no credits: what
// a machine has when it is launched, it has when the workload begins.
func governorOf(l *lab.Lab, seed uint64) (*flavor.Governor, verdict.Piece[int]) {
	var g *flavor.Governor
	held, gaps := 0, l.Unheld()
	for i, n := range l.Topology().Nodes {
		if n.Flavor == nil {
			continue
		}
		held++
		if !n.Flavor.Governed() {
			continue
		}
		h, err := l.Host(n.Name)
		node, ok := h.(flavor.Machine)
		if err == nil && !ok {
			err = errors.ErrUnsupported
		}
		if err != nil {
			gaps = append(gaps, fmt.Sprintf("%s is not governed: %v", n.Name, err))
			continue
		}
		if g == nil {
			g = flavor.NewGovernor()
		}
		g.Add(node, *n.Flavor, seed+uint64(i)*0x9e3779b97f4a7c15)
	}
	switch {
	case len(gaps) > 0:
		return g, verdict.Missing[int](strings.Join(gaps, "; "))
	case held == 0:
		return g, verdict.NotDue[int]()
	}
	return g, verdict.Of(held)
}
