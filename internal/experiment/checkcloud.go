package experiment

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/lab"
	"skerry/internal/topology"
)

// minMemory is less than any database needs to start.
const minMemory = 16 << 20

// buildCloud builds the topology, adds the clients, and chooses the nodes of the database.
func (c *checker) buildCloud() {
	e := c.e
	if e.Database.Cluster != nil {
		c.checkCluster()
		return
	}
	t, err := e.Topology.Build(e.origin.dir, e.origin.files.get)
	if err != nil {
		ps := asProblems(err, strict.Pos{})
		c.problems = append(c.problems, ps.Locate(e.origin.root, "topology")...)
		return
	}
	if ps := lab.CheckOverlay(t); len(ps) > 0 {
		c.problems = append(c.problems, ps.Locate(e.origin.root, "topology")...)
		return
	}
	e.origin.cloud, err = topology.WithClient(t, e.Client.Site)
	if err != nil {
		c.fail("client.site", advice.Of(err), "%v", err)
		return
	}
	if added := len(e.origin.cloud.Nodes) > len(t.Nodes); added {
		e.Client.applyLimits(&e.origin.cloud.Nodes[len(t.Nodes)])
	}
	if !c.placeClients() {
		return
	}
	for _, n := range e.origin.cloud.Nodes {
		if n.Memory > 0 && n.Memory < minMemory {
			c.fail("topology.defaults.memory", "write 4GiB, as in the papers", "memory %v of %s is too small for any database",
				unit.Bytes(n.Memory), n.Name)
			break
		}
	}
	c.chooseNodes(t)
	c.checkConnected()
}

// placeClients adds the clients of pools.
func (c *checker) placeClients() bool {
	e := c.e
	for i, p := range e.Workloads {
		if p.Client == nil {
			continue
		}
		var err error
		if e.origin.cloud, err = topology.AddClient(e.origin.cloud, p.Node(*e), p.Client.Site); err != nil {
			c.fail(fmt.Sprintf("workloads[%d].client.site", i), advice.Of(err), "%v", err)
			return false
		}
		p.Client.applyLimits(&e.origin.cloud.Nodes[len(e.origin.cloud.Nodes)-1])
	}
	return true
}

// applyLimits sets the client's limits on a node.
func (c Client) applyLimits(n *topology.Node) { n.CPU, n.Memory = c.CPU, int64(c.Memory) }

// chooseNodes chooses the nodes that run the database.
func (c *checker) chooseNodes(t topology.Topology) {
	e := c.e
	var data []string
	for _, n := range t.Nodes {
		if n.Role == topology.Data {
			data = append(data, n.Name)
		}
	}
	switch d := e.Database; {
	case len(d.Nodes) > 0:
		for i, name := range d.Nodes {
			path := fmt.Sprintf("database.nodes[%d]", i)
			if !slices.Contains(data, name) {
				c.fail(path, suggestName(name, data), "%q is not a data node of the topology", name)
			} else if slices.Contains(d.Nodes[:i], name) {
				c.fail(path, "", "duplicate node %s", name)
			}
		}
		e.origin.nodes = slices.DeleteFunc(data, func(n string) bool { return !slices.Contains(d.Nodes, n) })
	case d.Count > len(data):
		c.fail("database.count", "", "count is %d, the topology has %d data nodes", d.Count, len(data))
	case d.Count > 0:
		e.origin.nodes = data[:d.Count]
	case len(data) == 0:
		c.fail("topology", "", "topology has no data node")
	default:
		e.origin.nodes = data
	}
}

// checkConnected checks that all members and clients reach each other. Nodes forward packets only with an overlay.
func (c *checker) checkConnected() {
	links := map[[2]string]bool{}
	for _, l := range c.e.origin.cloud.Links {
		links[[2]string{l.A, l.B}], links[[2]string{l.B, l.A}] = true, true
	}
	members := slices.Concat(c.e.origin.nodes, event.JoiningNodes(c.e.Events, c.e.EventLayout(nil)))
	all := slices.Concat(members, c.e.ClientNodes())
	if c.e.origin.cloud.Overlay.Routed() {
		if a, b, apart := c.e.origin.cloud.FindDisconnected(all); apart {
			c.fail("topology", "link the parts", "no path from %s to %s over any links", a, b)
		}
		return
	}
	for i, a := range members { // clients do not communicate
		for _, b := range all[i+1:] {
			if !links[[2]string{a, b}] {
				c.fail("topology", "use connect: full to link every pair, or overlay: babel to forward packets",
					"no link between %s and %s, and nodes do not forward packets", a, b)
				return
			}
		}
	}
}

// suggestName is the hint for an unknown name.
func suggestName(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use one of " + strings.Join(known, ", ")
}

// EventLayout is the layout on which events occur. db may be nil; then it is unknown which nodes cannot leave.
func (e Experiment) EventLayout(db database.Database) event.Layout {
	if e.origin == nil {
		return event.Layout{}
	}
	s := event.Layout{Topology: e.origin.cloud, Data: e.DataNodes(), Clients: e.ClientNodes(), RealLinks: e.origin.real,
		Cluster: e.Database.Cluster, Database: db, Version: e.Database.Version}
	if a, ok := db.(database.Anchored); ok {
		s.Unremovable = a.Fixed(s.Data, e.Database.Options)
	}
	if f, ok := db.(database.Frail); ok {
		s.NoAbruptLeave = f.Frail(len(s.Data), e.Database.Options)
	}
	return s
}

// checkEvents checks what does not depend on the database.
func (c *checker) checkEvents() {
	s := &c.e.Stop
	event.Check(c.e.Events, c.e.EventLayout(nil), time.Duration(s.Time), func(path, hint, format string, args ...any) {
		c.fail("events"+path, hint, format, args...)
	})
	switch {
	case s.AfterEvents == nil:
	case len(c.e.Events) == 0:
		c.fail("stop.after_events", "remove it, or give events", "after_events without events")
	case s.Time == 0:
		c.fail("stop.after_events", "give stop.time, the maximum time of the trial",
			"after_events without stop.time: an event that never ends would keep the trial running")
	}
}

// describeEvents lists the events in order: "latency, kill (killing), leave".
func (e Experiment) describeEvents() string {
	names := make([]string, len(e.Events))
	for i, x := range e.Events {
		if names[i] = x.Kind(); x.Name != "" && x.Name != x.Kind() {
			names[i] += " (" + x.Name + ")"
		}
	}
	return strings.Join(names, ", ")
}

// Dir is the absolute path of the directory of the experiment's file. Commands run there.
func (e Experiment) Dir() (string, error) {
	dir, err := filepath.Abs(e.resolvePath("."))
	if err != nil {
		return "", fmt.Errorf("directory of experiment %s: %w", e.Name, err)
	}
	return dir, nil
}

// EventCommands returns the commands of the user that events of any trial run on the machine that runs skerry.
func (e Experiment) EventCommands() []string {
	return e.collect(func(x Experiment) []string { return ListCommands(x.Events) })
}

// collect returns the different strings that list returns for the trials.
func (e Experiment) collect(list func(trial Experiment) []string) (all []string) {
	for _, c := range e.Plan() {
		for _, line := range list(c.Experiment) {
			if !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}

// ListCommands returns the commands of the user that events run, each with its event's name.
func ListCommands(events []event.Event) (all []string) {
	for _, x := range events {
		for _, text := range x.Commands() {
			all = append(all, fmt.Sprintf("event %s, %s", x.Label(), text))
		}
	}
	return all
}

// localCommands returns the commands of the user that trials run on the machine that runs skerry: those of events, of a
// cluster that Skerry did not start, and of machines.
func (e Experiment) localCommands() []string {
	return e.collect(func(x Experiment) []string {
		all := ListCommands(x.Events)
		if k := x.Database.Cluster; k != nil {
			for _, text := range k.Commands() {
				all = append(all, "cluster, "+text)
			}
		}
		if f, err := x.ReadMachines(); err == nil && x.Machines.IsSet() { // checked before
			for _, m := range f.Machines {
				if text := m.LocalCommand(); text != "" {
					all = append(all, "machine "+m.Name+", "+text)
				}
			}
		}
		return all
	})
}

// commandNotes list every command of the user that a run runs.
func (e Experiment) commandNotes(databases map[string]database.Database) (notes []string) {
	for _, line := range e.localCommands() {
		notes = append(notes, "runs on this machine: "+line)
	}
	return append(notes, e.collect(func(x Experiment) (all []string) {
		if x.Database.Exec == "" {
			return nil
		}
		db, err := x.ResolveDatabase(databases)
		if s, ok := db.(database.Scripted); ok && err == nil {
			for _, line := range s.Commands() {
				where := "nodes"
				if x.Database.Cluster != nil {
					where = "this machine"
				}
				all = append(all, fmt.Sprintf("runs on %s: %s, %s", where, x.Database.Exec, line))
			}
		}
		return all
	})...)
}
