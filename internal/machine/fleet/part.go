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

// part is the parts of a lab on all machines. The first machine stores the lab's note and lock.
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

func (p *part) Members() []machine.Member {
	members := make([]machine.Member, len(p.parts))
	for i, x := range p.parts {
		members[i] = machine.Member{Name: p.fleet.members[i].Name, Part: x}
	}
	return members
}

// each calls all parts concurrently.
func (p *part) each(do func(i int, x machine.Part) error) error {
	return p.fleet.each(func(i int) error { return do(i, p.parts[i]) })
}

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

// index returns the machine of a node, or ErrNoNode.
func (p *part) index(node string) (int, error) {
	if i, ok := p.fleet.at[node]; ok {
		return i, nil
	}
	return 0, fmt.Errorf("%w on any machine: %s", machine.ErrNoNode, node)
}

// onNode calls the part of a node's machine.
func onNode[A any](p *part, node string, do func(x machine.Part) (A, error)) (result A, err error) {
	i, err := p.index(node)
	if err != nil {
		return result, err
	}
	result, err = do(p.parts[i])
	return result, p.fleet.nameError(i, err)
}

// distribute groups items by the machine of their node and passes each group to its part.
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
	return eachList(ctx, p, lists, do)
}

// eachList passes each machine's items, if any, to its part.
func eachList[T any](
	ctx context.Context, p *part, lists [][]T, do func(x machine.Part, ctx context.Context, these []T) error,
) error {
	return p.each(func(i int, x machine.Part) error {
		if len(lists[i]) == 0 {
			return nil
		}
		return do(x, ctx, lists[i])
	})
}

// Files returns the first machine's file system.
func (p *part) Files() files.System { return p.lead().Files() }

func (p *part) Commit(ctx context.Context, lab json.RawMessage) error {
	return p.each(func(_ int, x machine.Part) error { return x.Commit(ctx, lab) })
}

func (p *part) SetNote(ctx context.Context, note json.RawMessage) error {
	return p.fleet.nameError(0, p.lead().SetNote(ctx, note))
}

func (p *part) Note(ctx context.Context) (json.RawMessage, error) {
	note, err := p.lead().Note(ctx)
	return note, p.fleet.nameError(0, err)
}

func (p *part) Lock(ctx context.Context) error { return p.fleet.nameError(0, p.lead().Lock(ctx)) }

func (p *part) Unlock() error { return p.fleet.nameError(0, p.lead().Unlock()) }

func (p *part) Down(ctx context.Context) error {
	return p.each(func(_ int, x machine.Part) error { return x.Down(ctx) })
}

func (p *part) Close() error {
	return p.each(func(_ int, x machine.Part) error { return x.Close() })
}

// Ended is closed when the emulator of any machine ends.
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
		// These goroutines end with the part, because its emulator ends then.
		go func() {
			if gone := x.Ended(); gone != nil {
				<-gone
				once.Do(func() { close(ended) })
			}
		}()
	}
	return ended
}

// Facts implements machine.Part. It merges the machines' facts; process IDs are only set on a single machine.
func (p *part) Facts() machine.Facts {
	all := make([]machine.Facts, len(p.parts))
	for i, x := range p.parts {
		all[i] = p.fleet.nameFacts(i, x.Facts())
	}
	return mergeFacts(all)
}

// nameFacts adds the machine's name to facts.
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

// mergeSettings returns the settings of all machines. Values that differ are listed with the machines' names.
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

func (p *part) MakeNodes(ctx context.Context, nodes []machine.NodeSpec) error {
	err := distribute(ctx, p, nodes, func(n machine.NodeSpec) string { return n.Name }, machine.Part.MakeNodes)
	if err != nil || p.fleet.IsSingle() {
		return err
	}
	return p.connectMachines(ctx)
}

func (p *part) Host(node string) (host.Host, error) {
	return onNode(p, node, func(x machine.Part) (host.Host, error) { return x.Host(node) })
}

func (p *part) ContainerHost(c machine.Container) (host.Host, error) {
	return onNode(p, c.Node, func(x machine.Part) (host.Host, error) { return x.ContainerHost(c) })
}

func (p *part) SetNames(ctx context.Context, names []machine.NameRecord) error {
	return p.each(func(_ int, x machine.Part) error { return x.SetNames(ctx, names) })
}

func (p *part) SetResolver(ctx context.Context, server netip.Addr) error {
	return p.each(func(_ int, x machine.Part) error { return x.SetResolver(ctx, server) })
}
