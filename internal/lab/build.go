package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skerry/internal/cgroup"
	"skerry/internal/host"
	"skerry/internal/rootless"
	"skerry/internal/topology"
)

// build makes what claim planned.
func (l *Lab) build(ctx context.Context, c Config, b backend) error {
	for i, n := range c.Topology.Nodes {
		l.state.Nodes = append(l.state.Nodes, nodeState{
			Name: n.Name, Addr: address(i).String(),
			Dir: filepath.Join(l.state.Data, n.Name), Netns: l.place.namespace(n.Name),
		})
	}
	group, err := l.controlGroup()
	if err != nil {
		return err
	}
	if err := l.directories(); err != nil {
		return err
	}
	if err := l.mountVolumes(c); err != nil {
		return err
	}
	if err := l.space(ctx, c, b); err != nil {
		return err
	}
	if err := l.describe(c); err != nil {
		return err
	}
	l.attachNodes(group)
	if err := l.startOverlay(ctx, c); err != nil {
		return err
	}
	if err := l.startService(ctx, c); err != nil {
		return err
	}
	if rootless.Inside() && !c.Ephemeral {
		if err := l.hold(c.Exe); err != nil {
			return err
		}
	}
	err = errors.Join(writeJSON(l.place.file(linksFile), l.links), writeJSON(l.place.file(stateFile), l.state))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || c.Ephemeral {
		return err
	}
	err = l.owner.Close()
	l.owner = nil
	return err
}

// controlGroup makes the control group of the whole lab, nil with a warning where there
// is none to be had. Those of the nodes follow when they start something.
func (l *Lab) controlGroup() (*cgroup.Tree, error) {
	tree, err := cgroup.Open()
	if err == nil {
		err = tree.Group(l.state.ID).Create()
	}
	if errors.Is(err, cgroup.ErrNone) {
		l.warn("CPU and memory of nodes are not limited: %v", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.state.Groups = true
	l.warnDisk(tree)
	cpu, memory := tree.Group(l.state.ID).Limits()
	for _, n := range l.state.Topology.Nodes {
		if n.CPU > 0 && !cpu {
			l.warn("CPU of nodes is not limited: this machine gives no such control group")
			cpu = true
		}
		if n.Memory > 0 && !memory {
			l.warn("memory of nodes is not limited: this machine gives no such control group")
			memory = true
		}
	}
	return tree, nil
}

func (l *Lab) warn(format string, args ...any) {
	l.state.Warnings = append(l.state.Warnings, fmt.Sprintf(format, args...))
}

// directories makes those of the nodes, and the file of their names.
func (l *Lab) directories() error {
	var err error
	for range tries {
		if err = own(filepath.Dir(l.state.Data)); err == nil {
			err = os.Mkdir(l.state.Data, 0o755)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Symlink(l.place.dir(), filepath.Join(l.state.Data, madeFile)); err != nil {
		return fmt.Errorf("mark data directory: %w", err)
	}
	for _, n := range l.state.Nodes {
		if err := os.Mkdir(n.Dir, 0o755); err != nil {
			return fmt.Errorf("make directory of node: %w", err)
		}
	}
	return l.writeHosts()
}

// describe completes what is said about the lab.
func (l *Lab) describe(c Config) error {
	shown, err := show(l.state.Name, l.state.ID, l.state.Nodes)
	if err != nil {
		return err
	}
	for i, n := range l.state.Nodes {
		l.state.Nodes[i].Shown = shown[n.Name]
	}
	got, warnings, err := readSettings(l.state.Nodes[0].Netns, settingsFor(c.Overlay))
	l.state.Settings = got
	l.state.Warnings = append(l.state.Warnings, warnings...)
	return err
}

// clientWeight puts clients before the servers that they drive: each is a machine of its own
// in what is emulated, and a driver that waits for this machine's processors while servers
// have them would count its own delay as theirs.
const clientWeight = 20

// attachNodes makes the hosts of the lab's nodes.
func (l *Lab) attachNodes(tree *cgroup.Tree) {
	l.byName = make(map[string]*host.Node, len(l.state.Nodes))
	for i, n := range l.state.Nodes {
		s := host.Spec{
			Name: n.Name, Site: l.state.Topology.Nodes[i].Site, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns,
			Hosts: l.place.file(hostsFile), Resolver: l.place.file(resolverFile), Hide: l.place.namespaces(), Tag: l.state.ID,
			CPU: l.state.Topology.Nodes[i].CPU, Memory: l.state.Topology.Nodes[i].Memory, Disk: diskOf(l.state.Topology.Nodes[i]),
			Nested: rootless.Inside(), Began: l.journal.began,
		}
		if l.state.Topology.Nodes[i].Role == topology.Client {
			s.Weight = clientWeight
		}
		if tree != nil {
			s.Group = tree.Group(l.state.ID + "/" + n.Name)
		}
		node := host.NewNode(s)
		l.nodes = append(l.nodes, node)
		l.byName[n.Name] = node
	}
	l.contain()
}

// hold starts a process that keeps a user namespace, with all that is in it, after this
// one has ended.
func (l *Lab) hold(exe string) error {
	process, err := rootless.Hold(exe, []string{"agent", "hold"}, host.LabVariable+"="+l.state.ID)
	if err != nil {
		return err
	}
	l.state.Holder = &namedProcess{process, holder}
	return l.journal.began(process, holder)
}

// holder names the process that keeps a rootless lab's user namespace.
const holder = "@holder"
