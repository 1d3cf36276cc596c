package local

import (
	"fmt"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/rootless"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/statedir"
)

// attachNodes makes the hosts of the part's nodes.
func (p *part) attachNodes(tree *cgroup.Tree) {
	p.nodes = make(map[string]*host.Node, len(p.record.Nodes))
	for _, n := range p.record.Nodes {
		s := host.Spec{
			Name: n.Name, Site: n.Site, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns,
			Hosts: p.place.File(statedir.Hosts), Resolver: p.place.File(statedir.Resolver), Hide: p.place.Namespaces(), Tag: p.record.ID,
			CPU: n.CPU, Memory: n.Memory, Weight: n.Weight, Disk: diskLimit(n.Disk),
			Nested: rootless.Inside(), Whole: n.whole(), Began: p.journal.Began,
		}
		if tree != nil {
			s.Group = tree.Group(p.record.ID + "/" + n.Name)
		}
		p.nodes[n.Name] = host.NewNode(s)
	}
}

// openNodes makes the hosts of a part's nodes that are there already.
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

// Host implements machine.Nodes.
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

// Contain implements machine.Nodes.
func (p *part) Contain(c machine.Container) (host.Host, error) {
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
