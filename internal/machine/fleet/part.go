package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"skerry/internal/machine"
	"skerry/internal/machine/files"
)

// part is the parts of a lab on all machines. The first machine's has the lab's note, and its
// lock is the lab's.
type part struct {
	fleet *Fleet
	parts []machine.Part // by the fleet's members

	mtu   int // of links between machines, in bytes; set by Make
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

// there is the parts that were made or opened, and their machines.
func (p *part) there() ([]machine.Part, *Fleet) {
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

// on is the part that a node is of.
func (p *part) on(node string) (machine.Part, error) {
	i, err := p.index(node)
	if err != nil {
		return nil, err
	}
	return p.parts[i], nil
}

// shared hands what is about nodes to their machines.
func shared[T any](p *part, all []T, node func(T) string, do func(x machine.Part, these []T) error) error {
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
		return do(x, lists[i])
	})
}

// Files implements machine.Part: of the first machine.
func (p *part) Files() files.System { return p.lead().Files() }

// Keep implements machine.Part.
func (p *part) Keep(ctx context.Context, lab json.RawMessage) error {
	return p.each(func(_ int, x machine.Part) error { return x.Keep(ctx, lab) })
}

// SetNote implements machine.Part.
func (p *part) SetNote(ctx context.Context, note json.RawMessage) error {
	return p.fleet.named(0, p.lead().SetNote(ctx, note))
}

// Note implements machine.Part.
func (p *part) Note(ctx context.Context) (json.RawMessage, error) {
	note, err := p.lead().Note(ctx)
	return note, p.fleet.named(0, err)
}

// Lock implements machine.Part.
func (p *part) Lock(ctx context.Context) error { return p.fleet.named(0, p.lead().Lock(ctx)) }

// Unlock implements machine.Part.
func (p *part) Unlock() error { return p.fleet.named(0, p.lead().Unlock()) }

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
	if p.fleet.One() {
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
