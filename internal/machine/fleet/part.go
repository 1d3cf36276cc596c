package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// part is the parts of a lab on all machines. The first machine's has the lab's note, and its
// lock is the lab's.
type part struct {
	fleet *Fleet
	parts []machine.Part // by the fleet's members

	mtu   int // of links between machines, in bytes; set by MakeNodes
	mu    sync.Mutex
	links map[string]linkEnds // by link ID
	ended chan struct{}       // nil before Ended
}

var _ machine.Part = (*part)(nil)

func (p *part) lead() machine.Part { return p.parts[0] }

// Members implements machine.Part.
func (p *part) Members() []machine.Member {
	members := make([]machine.Member, len(p.parts))
	for i, x := range p.parts {
		members[i] = machine.Member{Name: p.fleet.members[i].Name, Part: x}
	}
	return members
}

// each asks all parts at the same time.
func (p *part) each(do func(i int, x machine.Part) error) error {
	return p.fleet.each(func(i int) error { return do(i, p.parts[i]) })
}

// openParts is the parts that were made or opened, and their machines.
func (p *part) openParts() ([]machine.Part, *Fleet) {
	f := &Fleet{at: p.fleet.at}
	var parts []machine.Part
	for i, x := range p.parts {
		if x != nil {
			parts, f.members = append(parts, x), append(f.members, p.fleet.members[i])
		}
	}
	return parts, f
}

// index is the number of the machine that a node is on; ErrNoNode when there is none.
func (p *part) index(node string) (int, error) {
	if i, ok := p.fleet.at[node]; ok {
		return i, nil
	}
	return 0, fmt.Errorf("%w on any machine: %s", machine.ErrNoNode, node)
}

// partOf is the part that a node is of.
func (p *part) partOf(node string) (machine.Part, error) {
	i, err := p.index(node)
	if err != nil {
		return nil, err
	}
	return p.parts[i], nil
}

// distribute hands what is about nodes to their machines.
func distribute[T any](
	ctx context.Context, p *part, all []T, node func(T) string, do func(x machine.Part, ctx context.Context, these []T) error,
) error {
	lists := make([][]T, len(p.parts))
	for _, t := range all {
		i, err := p.index(node(t))
		if err != nil {
			return err
		}
		lists[i] = append(lists[i], t)
	}
	return p.each(func(i int, x machine.Part) error {
		if len(lists[i]) == 0 {
			return nil
		}
		return do(x, ctx, lists[i])
	})
}

// Files implements machine.Part: of the first machine.
func (p *part) Files() files.System { return p.lead().Files() }

// Commit implements machine.Part.
func (p *part) Commit(ctx context.Context, lab json.RawMessage) error {
	return p.each(func(_ int, x machine.Part) error { return x.Commit(ctx, lab) })
}

// SetNote implements machine.Part.
func (p *part) SetNote(ctx context.Context, note json.RawMessage) error {
	return p.fleet.nameError(0, p.lead().SetNote(ctx, note))
}

// Note implements machine.Part.
func (p *part) Note(ctx context.Context) (json.RawMessage, error) {
	note, err := p.lead().Note(ctx)
	return note, p.fleet.nameError(0, err)
}

// Lock implements machine.Part.
func (p *part) Lock(ctx context.Context) error { return p.fleet.nameError(0, p.lead().Lock(ctx)) }

// Unlock implements machine.Part.
func (p *part) Unlock() error { return p.fleet.nameError(0, p.lead().Unlock()) }

// Down implements machine.Part.
func (p *part) Down(ctx context.Context) error {
	return p.each(func(_ int, x machine.Part) error { return x.Down(ctx) })
}

// Close implements machine.Part.
func (p *part) Close() error {
	return p.each(func(_ int, x machine.Part) error { return x.Close() })
}

// Ended implements machine.Part: the process of any machine.
func (p *part) Ended() <-chan struct{} {
	if p.fleet.IsSingle() {
		return p.lead().Ended()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	ended := make(chan struct{})
	p.ended = ended
	var once sync.Once
	for _, x := range p.parts {
		// Each ends with the part: its emulator ends then.
		go func() {
			if gone := x.Ended(); gone != nil {
				<-gone
				once.Do(func() { close(ended) })
			}
		}()
	}
	return ended
}

// Facts implements machine.Part: of all machines together. Processes belong to one machine, and are reported
// where there is one.
func (p *part) Facts() machine.Facts {
	all := make([]machine.Facts, len(p.parts))
	for i, x := range p.parts {
		all[i] = p.fleet.nameFacts(i, x.Facts())
	}
	return mergeFacts(all)
}

// nameFacts is what a machine tells, with its name.
func (f *Fleet) nameFacts(i int, told machine.Facts) machine.Facts {
	name := f.members[i].Name
	told.Warnings = slices.Clone(told.Warnings)
	for k, w := range told.Warnings {
		told.Warnings[k] = name + ": " + w
	}
	told.Nodes = slices.Clone(told.Nodes)
	for k := range told.Nodes {
		told.Nodes[k].Machine = name
	}
	return told
}

func mergeFacts(all []machine.Facts) machine.Facts {
	f := all[0]
	f.Settings = mergeSettings(all)
	for _, x := range all[1:] {
		f.Emulator, f.Tunneller, f.Holder = 0, 0, nil
		f.Warnings = append(f.Warnings, x.Warnings...)
		f.Unenforced = append(f.Unenforced, x.Unenforced...)
		f.Nodes = append(f.Nodes, x.Nodes...)
		if len(f.Lab) == 0 {
			f.Lab = x.Lab
		}
	}
	return f
}

// mergeSettings returns the settings of all machines; a value that differs between them comes with their names.
func mergeSettings(all []machine.Facts) map[string]string {
	var merged map[string]string
	for _, x := range all {
		for name := range x.Settings {
			var values, named []string
			for _, y := range all {
				if len(y.Nodes) == 0 {
					continue // which has no settings either
				}
				values = append(values, y.Settings[name])
				named = append(named, y.Settings[name]+" on "+y.Nodes[0].Machine)
			}
			if merged == nil {
				merged = map[string]string{}
			}
			merged[name] = strings.Join(named, ", ")
			if slices.Sort(values); len(slices.Compact(values)) == 1 {
				merged[name] = values[0]
			}
		}
	}
	return merged
}

// MakeNodes implements machine.Nodes. Machines whose nodes are linked reach each other from then on.
func (p *part) MakeNodes(ctx context.Context, nodes []machine.NodeSpec) error {
	err := distribute(ctx, p, nodes, func(n machine.NodeSpec) string { return n.Name }, machine.Part.MakeNodes)
	if err != nil || p.fleet.IsSingle() {
		return err
	}
	return p.connectMachines(ctx)
}

// Host implements machine.Nodes.
func (p *part) Host(node string) (host.Host, error) {
	i, err := p.index(node)
	if err != nil {
		return nil, err
	}
	h, err := p.parts[i].Host(node)
	return h, p.fleet.nameError(i, err)
}

// ContainerHost implements machine.Nodes.
func (p *part) ContainerHost(c machine.Container) (host.Host, error) {
	i, err := p.index(c.Node)
	if err != nil {
		return nil, err
	}
	h, err := p.parts[i].ContainerHost(c)
	return h, p.fleet.nameError(i, err)
}

// SetNames implements machine.Nodes: all names are known on all machines.
func (p *part) SetNames(ctx context.Context, names []machine.NameRecord) error {
	return p.each(func(_ int, x machine.Part) error { return x.SetNames(ctx, names) })
}

// SetResolver implements machine.Nodes.
func (p *part) SetResolver(ctx context.Context, server netip.Addr) error {
	return p.each(func(_ int, x machine.Part) error { return x.SetResolver(ctx, server) })
}
