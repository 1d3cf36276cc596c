package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/rootless"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
	"skerry/internal/topology/flavor"
)

func (p *part) MakeNodes(ctx context.Context, nodes []machine.NodeSpec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		made := node{NodeSpec: n, Dir: filepath.Join(p.record.Data, n.Name), Netns: p.place.Namespace(n.Name)}
		if p.ask.Whole {
			made.Netns = netns.OwnPath
		}
		p.record.Nodes = append(p.record.Nodes, made)
	}
	if err := p.wholly(); err != nil {
		return err
	}
	group, err := p.controlGroup()
	if err != nil {
		return err
	}
	if err := p.directories(); err != nil {
		return err
	}
	if err := p.SetNames(ctx, nil); err != nil {
		return err
	}
	if err := p.mountVolumes(); err != nil {
		return err
	}
	if err := p.space(ctx); err != nil {
		return err
	}
	if err := p.show(); err != nil {
		return err
	}
	p.attachNodes(group)
	return nil
}

func (p *part) directories() error {
	var err error
	for range journal.MakeAttempts {
		if err = journal.MakeOwnedDir(filepath.Dir(p.record.Data)); err == nil {
			err = os.Mkdir(p.record.Data, 0o755)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Symlink(p.place.Dir(), filepath.Join(p.record.Data, journal.Mark)); err != nil {
		return fmt.Errorf("mark data directory: %w", err)
	}
	for _, n := range p.record.Nodes {
		if err := os.Mkdir(n.Dir, 0o755); err != nil {
			return fmt.Errorf("make directory of node: %w", err)
		}
	}
	return nil
}

// volumesDir holds the volumes' backing files. Node names do not begin with a dot.
const volumesDir = ".volumes"

// mountVolumes mounts the nodes' volumes on their directories.
func (p *part) mountVolumes() error {
	shared := false
	for _, n := range p.record.Nodes {
		if !n.Volume.Enabled() {
			continue
		}
		// Other labs' processes have copies of the machine's mounts. If the mount is shared, unmounting here also unmounts
		// the copies, which releases the loop device.
		if !shared {
			if err := network.Share(p.record.Data); err != nil {
				return fmt.Errorf("mount place of volumes: %w", err)
			}
			shared = true
		}
		if err := mountVolume(n.Volume, n.Dir, filepath.Join(p.record.Data, volumesDir, n.Name)); err != nil {
			return err
		}
	}
	return nil
}

// SetNames implements machine.Nodes. It writes the file in place, because processes have it mounted.
func (p *part) SetNames(_ context.Context, names []machine.NameRecord) error {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	for _, n := range names {
		fmt.Fprintf(&b, "%s %s\n", n.Addr, n.Name)
	}
	if err := os.WriteFile(p.place.Path(journal.HostsFile), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write names of nodes: %w", err)
	}
	return nil
}

func (p *part) SetResolver(_ context.Context, server netip.Addr) error {
	text := fmt.Sprintf("nameserver %s\noptions timeout:1 attempts:3\n", server)
	if err := os.WriteFile(p.place.Path(journal.ResolverFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("name the lab's DNS server: %w", err)
	}
	return nil
}

// attachNodes makes the hosts of new nodes.
func (p *part) attachNodes(tree *cgroup.Tree) {
	p.nodes = make(map[string]*host.Node, len(p.record.Nodes))
	for _, n := range p.record.Nodes {
		s := host.Spec{
			Name: n.Name, Site: n.Site, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns,
			Hosts: p.place.Path(journal.HostsFile), Resolver: p.place.Path(journal.ResolverFile), Hide: p.place.Namespaces(), Tag: p.record.ID,
			CPU: n.CPU, Memory: n.Memory, Weight: n.Weight, Disk: diskLimit(n.Disk),
			Nested: rootless.Inside(), Whole: n.whole(), Began: p.journal.AppendProcess,
		}
		if tree != nil {
			s.Group = tree.Group(p.record.ID + "/" + n.Name)
		}
		p.nodes[n.Name] = host.NewNode(s)
	}
}

// openNodes makes the hosts of existing nodes.
func (p *part) openNodes() error {
	if !p.record.Groups {
		p.attachNodes(nil)
		return nil
	}
	tree, err := cgroup.Open()
	if err != nil {
		return err
	}
	p.attachNodes(tree)
	return nil
}

func (p *part) Host(name string) (host.Host, error) {
	n, err := p.node(name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (p *part) node(name string) (*host.Node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.nodes[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%w in lab %s: %s", machine.ErrNoNode, p.record.Name, name)
}

func (p *part) ContainerHost(c machine.Container) (host.Host, error) {
	n, err := p.node(c.Node)
	if err != nil {
		return nil, err
	}
	space := n.Netns()
	if c.Own {
		space = p.place.Container(c.Node)
	}
	return n.Container(host.Space{Netns: space, Listen: c.Listen.String(), Addr: c.Addr.String(), Ports: c.Ports}), nil
}

// controlGroup makes the part's control group. It returns nil and adds a warning if that is impossible. Nodes get theirs
// when they start a process.
func (p *part) controlGroup() (*cgroup.Tree, error) {
	tree, err := cgroup.Open()
	if err == nil {
		err = tree.Group(p.record.ID).Create()
	}
	if errors.Is(err, cgroup.ErrNone) {
		p.warn("CPU and memory of nodes are not limited: %v", err)
		for _, n := range p.record.Nodes {
			p.record.Unheld = append(p.record.Unheld, machine.UnenforcedLimit{Node: n.Name, Why: err.Error()})
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.record.Groups = true
	p.record.Unheld = p.unenforcedLimits(tree)
	p.warnUnenforced()
	return tree, nil
}

// warnUnenforced adds a warning for each kind of limit that is not enforced.
func (p *part) warnUnenforced() {
	told := map[string]bool{}
	for _, l := range p.record.Unheld {
		switch {
		case told[l.Limit]:
		case l.Limit == disk:
			p.warn("%s of nodes is not limited: %s", l.Limit, l.Why)
		default:
			p.warn("%s of nodes is not limited: this machine gives no such control group", l.Limit)
		}
		told[l.Limit] = true
	}
}

// disk is the Limit of a node's disk throughput.
const disk = "disk throughput"

func (p *part) warn(format string, args ...any) {
	p.record.Warnings = append(p.record.Warnings, fmt.Sprintf(format, args...))
}

// boundsDisk returns why disk limits are impossible, nil if they work.
func (p *part) boundsDisk(tree *cgroup.Tree) error {
	_, err := cgroup.FindDisk(filepath.Dir(filepath.Dir(p.record.Data)))
	if err == nil && !tree.Group(p.record.ID).CanLimitDisk() {
		err = cgroup.ErrNoController
	}
	return err
}

// unenforcedLimits returns the limits that the tree's control groups cannot enforce.
func (p *part) unenforcedLimits(tree *cgroup.Tree) (lacks []machine.UnenforcedLimit) {
	cpu, memory := tree.Group(p.record.ID).SupportedLimits()
	for _, n := range p.record.Nodes {
		lack := func(limit string, why error) {
			lacks = append(lacks, machine.UnenforcedLimit{Node: n.Name, Limit: limit, Why: why.Error()})
		}
		if n.CPU > 0 && !cpu {
			lack("CPU", cgroup.ErrNoController)
		}
		if n.Memory > 0 && !memory {
			lack("memory", cgroup.ErrNoController)
		}
		if n.Disk == (flavor.Disk{}) {
			continue
		}
		if why := p.boundsDisk(tree); why != nil {
			lack(disk, why)
		}
	}
	return lacks
}

func diskLimit(d flavor.Disk) cgroup.DiskLimit {
	return cgroup.DiskLimit{ReadBytes: d.ReadBytes, WriteBytes: d.WriteBytes, ReadOps: d.ReadOps, WriteOps: d.WriteOps}
}
