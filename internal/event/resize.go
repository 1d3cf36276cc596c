package event

import (
	"context"
	"fmt"
	"math/rand/v2"

	"skerry/internal/database"
	"skerry/internal/database/external"
)

// MemberSelector selects nodes that join or leave. On a cluster that Skerry did not start, its commands choose the servers,
// and only their number is given.
type MemberSelector struct {
	// Nodes are names of nodes, of sites or of groups, as for other events. They are required in a lab, and not allowed on
	// a cluster that Skerry did not start: there, count servers join or leave.
	Nodes     Names `yaml:"nodes" json:"nodes,omitempty"`
	Selection `yaml:",inline"`
}

// Shorthand: "leave: Seoul" is "leave: {nodes: Seoul}".
func (MemberSelector) Shorthand() string { return "nodes" }

func (m MemberSelector) checkMembers(s Layout, fail failure, doing string) {
	switch {
	case s.Cluster == nil && len(m.Nodes) == 0:
		fail("", "such as nodes: spare", "nodes is missing")
	case s.Cluster == nil:
		NodeSelector(m).checkMembers(s, fail, doing)
	case len(m.Nodes) > 0:
		fail("nodes", "give count, the number of servers", "nodes of a cluster that Skerry did not start cannot be chosen by name")
	case m.Choose != "all":
		fail("choose", "remove it", "the commands of database.cluster choose the servers")
	}
}

func (m MemberSelector) selectNodes(s Layout, turn int, busy map[string]bool, r *rand.Rand) []string {
	return NodeSelector(m).draw(s, turn, busy, r)
}

func (m MemberSelector) limit(s Layout) int { return NodeSelector(m).limit(s) }

// selectsAll reports whether every occurrence has the same nodes.
func (m MemberSelector) selectsAll() bool { return len(m.Nodes) > 0 && m.Selection.selectsAll() }

// requireCommand reports an event that a cluster that Skerry did not start has no command for.
func requireCommand(fail failure, kind, command string) {
	if command == "" {
		fail("", "give database.cluster."+kind, "the cluster has no command %s", kind)
	}
}

// resizeAction changes the number of servers of a cluster that Skerry did not start.
type resizeAction struct {
	by   int
	done bool
}

func (*resizeAction) targets() []string { return nil }

func (a *resizeAction) what() string { return fmt.Sprintf("%+d servers", a.by) }

func (a *resizeAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	err := w.resize(ctx, a.by, p)
	a.done = err == nil
	return err
}

// revert does nothing after a change that failed: the cluster returns to its initial number of servers after the trial.
func (a *resizeAction) revert(ctx context.Context, w *Testbed, p *progress) error {
	if !a.done {
		return nil
	}
	return w.resize(ctx, -a.by, p)
}

func (w *Testbed) resize(ctx context.Context, by int, p *progress) error {
	c, ok := w.Cluster.(*external.Cluster)
	if !ok {
		return fmt.Errorf("change the number of servers: %w", database.ErrUnsupported)
	}
	return w.changeMembers(ctx, p, func() (database.Change, error) { return c.Resize(ctx, by) })
}
