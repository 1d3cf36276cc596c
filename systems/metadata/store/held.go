package store

import (
	"maps"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

// txnPart is what a server has of a transaction. It is never changed, but replaced.
type txnPart struct {
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

// lockTable are the transactions of a server. It is never changed, but replaced, whereupon
// changed is closed.
type lockTable struct {
	txns     []*txnPart // by name
	watches  []metadata.Txn
	applying bool // a transaction's commands are being run: what is read is half done
	changed  chan struct{}
}

func newLockTable(parts []*txnPart) *lockTable {
	return &lockTable{txns: parts, changed: make(chan struct{})}
}

// setParts replaces the transactions.
func (s *State) setParts(parts []*txnPart) {
	h := newLockTable(parts)
	for _, name := range slices.Sorted(maps.Keys(s.watches)) {
		w := s.watches[name]
		h.watches = append(h.watches, metadata.Txn{Name: name, Since: w.since, Lease: w.lease, Watching: true})
	}
	s.swapLocks(h)
}

func (s *State) swapLocks(h *lockTable) { close(s.locks.Swap(h).changed) }

func (h *lockTable) find(name string) (int, *txnPart) {
	i, found := slices.BinarySearchFunc(h.txns, name, func(p *txnPart, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		return i, nil
	}
	return i, h.txns[i]
}

// with are the transactions with one added or replaced, without with it taken out.
func (h *lockTable) with(p *txnPart) []*txnPart {
	i, old := h.find(p.Name)
	if old != nil {
		parts := slices.Clone(h.txns)
		parts[i] = p
		return parts
	}
	return slices.Insert(slices.Clone(h.txns), i, p)
}

func (h *lockTable) without(name string) []*txnPart {
	i, old := h.find(name)
	if old == nil {
		return h.txns
	}
	return slices.Delete(slices.Clone(h.txns), i, i+1)
}

func (p *txnPart) heldError(path string) error {
	return &metadata.HeldError{Path: path, Txn: p.Name, Coordinator: p.Coordinator}
}

// checkChange tells, by an error, whether a change must wait: it is about something that is
// locked, or takes away the way to that.
func (h *lockTable) checkChange(c metadata.Command) error {
	for _, p := range h.txns {
		for _, locked := range p.Locks {
			if conflicts(locked, c.Path, removesSubtree(c)) || c.Op == metadata.Move && conflicts(locked, c.To, true) {
				return p.heldError(locked)
			}
		}
	}
	return nil
}

func conflicts(locked, path string, structural bool) bool {
	return metadata.Under(path, locked) || structural && metadata.Under(locked, path)
}

// removesSubtree tells whether a command may take away what is below its path.
func removesSubtree(c metadata.Command) bool {
	switch c.Op {
	case metadata.Move, metadata.Remove, metadata.Rmdir, metadata.Delegate, metadata.Adopt:
		return true
	}
	return false
}

// checkRead tells, by an error, whether a read must wait: another server may have decided a
// transaction already that changes what is read. What this one decides is as it was until
// it has.
func (h *lockTable) checkRead(c metadata.Command) error {
	for _, p := range h.txns {
		if p.Coordinator == "" {
			continue
		}
		for _, locked := range p.Locks {
			parent, _ := metadata.Split(locked)
			if metadata.Under(c.Path, locked) || c.Path == parent && (c.Op == metadata.List || c.Op == metadata.Stat) {
				return p.heldError(locked)
			}
		}
	}
	return nil
}

// checkLocks tells, by an error, whether another transaction holds what one is to lock.
func (h *lockTable) checkLocks(name string, locks []string) error {
	for _, p := range h.txns {
		if p.Name == name {
			continue
		}
		for _, held := range p.Locks {
			for _, wanted := range locks {
				if metadata.Under(wanted, held) || metadata.Under(held, wanted) {
					return p.heldError(held)
				}
			}
		}
	}
	return nil
}
