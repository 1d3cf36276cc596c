package store

import (
	"maps"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

// part is what a server has of a transaction. It is never changed, but replaced.
type part struct {
	metadata.Txn
	Batch []byte `json:"batch,omitempty"` // of commands that are run when it is finished
	// Expires is when the lease is over by the wall clock of who wrote the record, in ns since
	// 1970. It counts for steps of logs from before entries did, which must end as they did.
	Expires int64 `json:"expires"`

	// In snapshots alone: what a transaction watches is no part that holds anything.
	Watch   string          `json:"watch,omitempty"`
	Changed map[string]bool `json:"changed,omitempty"`
	Lost    bool            `json:"lost,omitempty"`
}

// held are the transactions of a server. It is never changed, but replaced, whereupon
// changed is closed.
type held struct {
	parts    []*part // by name
	watches  []metadata.Txn
	applying bool // a transaction's commands are being run: what is read is half done
	changed  chan struct{}
}

func newHeld(parts []*part) *held { return &held{parts: parts, changed: make(chan struct{})} }

// hold replaces the transactions.
func (s *State) hold(parts []*part) {
	h := newHeld(parts)
	for _, name := range slices.Sorted(maps.Keys(s.watches)) {
		w := s.watches[name]
		h.watches = append(h.watches, metadata.Txn{Name: name, Since: w.since, Lease: w.lease, Watching: true})
	}
	s.replace(h)
}

func (s *State) replace(h *held) { close(s.held.Swap(h).changed) }

func (h *held) find(name string) (int, *part) {
	i, found := slices.BinarySearchFunc(h.parts, name, func(p *part, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		return i, nil
	}
	return i, h.parts[i]
}

// with are the transactions with one added or replaced, without with it taken out.
func (h *held) with(p *part) []*part {
	i, old := h.find(p.Name)
	if old != nil {
		parts := slices.Clone(h.parts)
		parts[i] = p
		return parts
	}
	return slices.Insert(slices.Clone(h.parts), i, p)
}

func (h *held) without(name string) []*part {
	i, old := h.find(name)
	if old == nil {
		return h.parts
	}
	return slices.Delete(slices.Clone(h.parts), i, i+1)
}

func (p *part) error(path string) error {
	return &metadata.Held{Path: path, Txn: p.Name, Coordinator: p.Coordinator}
}

// bars tells, by an error, whether a change must wait: it is about something that is
// locked, or takes away the way to that.
func (h *held) bars(c metadata.Command) error {
	for _, p := range h.parts {
		for _, locked := range p.Locks {
			if bars(locked, c.Path, structural(c)) || c.Op == metadata.Move && bars(locked, c.To, true) {
				return p.error(locked)
			}
		}
	}
	return nil
}

func bars(locked, path string, structural bool) bool {
	return metadata.Under(path, locked) || structural && metadata.Under(locked, path)
}

// structural tells whether a command may take away what is below its path.
func structural(c metadata.Command) bool {
	switch c.Op {
	case metadata.Move, metadata.Remove, metadata.Rmdir, metadata.Delegate, metadata.Adopt:
		return true
	}
	return false
}

// hides tells, by an error, whether a read must wait: another server may have decided a
// transaction already that changes what is read. What this one decides is as it was until
// it has.
func (h *held) hides(c metadata.Command) error {
	for _, p := range h.parts {
		if p.Coordinator == "" {
			continue
		}
		for _, locked := range p.Locks {
			parent, _ := metadata.Split(locked)
			if metadata.Under(c.Path, locked) || c.Path == parent && (c.Op == metadata.List || c.Op == metadata.Stat) {
				return p.error(locked)
			}
		}
	}
	return nil
}

// conflict tells, by an error, whether another transaction holds what one is to lock.
func (h *held) conflict(name string, locks []string) error {
	for _, p := range h.parts {
		if p.Name == name {
			continue
		}
		for _, held := range p.Locks {
			for _, wanted := range locks {
				if metadata.Under(wanted, held) || metadata.Under(held, wanted) {
					return p.error(held)
				}
			}
		}
	}
	return nil
}
