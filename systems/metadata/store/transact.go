package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

func (s *State) transact(c metadata.Command) metadata.Result {
	step, err := metadata.ParseStep(c.Data)
	if err != nil {
		return metadata.Result{Err: err}
	}
	h := s.locks.Load()
	_, p := h.find(step.Txn)
	if s.watches[step.Txn] != nil && (step.Verb == metadata.Commit || step.Verb == metadata.Abort) {
		delete(s.watches, step.Txn)
		s.setParts(h.txns)
		h = s.locks.Load()
	}
	switch step.Verb {
	case metadata.Prepare:
		return s.prepare(c, step, h, p)
	case metadata.Commit:
		return s.commit(c, step, h, p)
	case metadata.Finish:
		return s.finish(c, h, p)
	case metadata.Abort:
		if p != nil && p.Committed {
			return metadata.Result{Err: fmt.Errorf("%w step: transaction %s is committed", metadata.ErrInvalid, p.Name)}
		}
		s.removePart(h, p)
	case metadata.Forget:
		if p != nil && p.Committed {
			s.removePart(h, p)
		}
	case metadata.Resolve:
		return s.resolve(c, step, h, p)
	case metadata.Watch:
		return s.watchDirectory(c, step)
	case metadata.Recall:
		return s.outcomes.recallChange(step.Txn, step.Entry)
	}
	return metadata.Result{}
}

func (s *State) removePart(h *lockTable, p *txnPart) {
	if p != nil {
		s.setParts(h.without(p.Name))
	}
}

// prepare locks the paths of a step, and promises that its commands will succeed.
func (s *State) prepare(c metadata.Command, step metadata.Step, h *lockTable, p *txnPart) metadata.Result {
	var next txnPart
	if p != nil {
		next = *p
		if p.Committed {
			return metadata.Result{Err: fmt.Errorf("%w step: transaction %s is committed", metadata.ErrInvalid, p.Name)}
		}
	}
	next.Name, next.Coordinator, next.Since, next.Lease, next.Expires = step.Txn, step.Coordinator, s.index, step.Lease, c.Time+step.Lease
	locks := lockPaths(c, step.Commands)
	if err := h.checkLocks(step.Txn, locks); err != nil {
		return metadata.Result{Err: err}
	}
	info, err := s.describePath(c.Path)
	if err != nil {
		return metadata.Result{Err: err}
	}
	next.Batch = metadata.AppendBatch(slices.Clone(next.Batch), step.Commands)
	all, err := parseBatch(next.Batch)
	if err == nil {
		err = s.Tree().CheckAll(all)
	}
	if err != nil {
		return metadata.Result{Err: err}
	}
	next.Locks = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(next.Locks), locks...))))
	s.setParts(h.with(&next))
	return info
}

// lockPaths returns the paths that a step locks. The root and directories created in it with Parents are never locked.
func lockPaths(c metadata.Command, commands []metadata.Command) []string {
	var locks []string
	add := func(path string) {
		if path != "" && path != "/" && !slices.Contains(locks, path) {
			locks = append(locks, path)
		}
	}
	add(c.Path)
	add(c.To)
	for _, c := range commands {
		if c.Op == metadata.Mkdir && c.Parents {
			continue
		}
		add(c.Path)
		if c.Op == metadata.Move {
			add(c.To)
		}
	}
	return locks
}

func (s *State) describePath(path string) (metadata.Result, error) {
	if path == "/" {
		return metadata.Result{}, nil
	}
	t := s.Tree()
	dir, name := metadata.Split(path)
	found := t.Do(metadata.Command{Op: metadata.Stat, Path: dir})
	if errors.Is(found.Err, metadata.ErrNotFound) {
		return found, &metadata.Error{Path: path, Err: metadata.ErrNotFound}
	}
	if found.Err != nil {
		return found, found.Err
	}
	below := t.VirtualEntries(path)
	if len(below) == 1 && below[0].Name == path {
		below[0].Name = name
		return metadata.Result{Entries: below}, nil
	}
	r := t.Do(metadata.Command{Op: metadata.Stat, Path: path})
	if errors.Is(r.Err, metadata.ErrNotFound) {
		return metadata.Result{}, nil
	}
	if r.Err != nil {
		return r, r.Err
	}
	if r.Entries[0].Kind == metadata.File {
		r.Data = t.Do(metadata.Command{Op: metadata.Read, Path: path}).Data
	}
	r.Entries = append(r.Entries, below...)
	return r, nil
}

func parseBatch(b []byte) (commands []metadata.Command, err error) {
	err = metadata.ParseBatch(b, func(c metadata.Command) { commands = append(commands, c) })
	return commands, err
}

// commit decides a transaction at its coordinator.
func (s *State) commit(c metadata.Command, step metadata.Step, h *lockTable, p *txnPart) metadata.Result {
	switch {
	case p == nil:
		return metadata.Result{Err: metadata.ErrAborted}
	case p.Committed:
		return metadata.Result{}
	case p.Coordinator != "":
		return metadata.Result{Err: fmt.Errorf("%w step: the coordinator is %s", metadata.ErrInvalid, p.Coordinator)}
	}
	all, err := parseBatch(p.Batch)
	if err == nil {
		all = append(all, step.Commands...)
		if err = h.checkLocks(p.Name, lockPaths(metadata.Command{}, all)); err == nil {
			err = s.Tree().CheckAll(all)
		}
	}
	if err != nil {
		s.removePart(h, p)
		return metadata.Result{Err: err}
	}
	s.swapLocks(&lockTable{txns: h.txns, watches: h.watches, applying: true, changed: make(chan struct{})})
	r := s.runCommands(all, c.Time)
	if len(step.Servers) == 0 {
		s.setParts(h.without(p.Name))
		return r
	}
	decided := &txnPart{Txn: metadata.Txn{Name: p.Name, Since: s.index, Lease: p.Lease, Committed: true, Servers: step.Servers}}
	s.setParts(h.with(decided))
	return r
}

func (s *State) finish(c metadata.Command, h *lockTable, p *txnPart) metadata.Result {
	if p == nil || p.Committed {
		return metadata.Result{}
	}
	if p.Coordinator == "" {
		return metadata.Result{Err: fmt.Errorf("%w step: this server is the coordinator and has not decided", metadata.ErrInvalid)}
	}
	all, err := parseBatch(p.Batch)
	if err != nil {
		return metadata.Result{Err: err}
	}
	s.swapLocks(&lockTable{txns: h.txns, watches: h.watches, applying: true, changed: make(chan struct{})})
	r := s.runCommands(all, c.Time)
	s.setParts(h.without(p.Name))
	return r
}

func (s *State) runCommands(commands []metadata.Command, now int64) (result metadata.Result) {
	for _, c := range commands {
		if c.Op != metadata.Touch {
			c.Time = now
		}
		r := s.applyChange(c)
		if r.Err != nil && result.Err == nil {
			result.Err = r.Err
		}
		if len(r.Entries) > 0 {
			result.Entries = r.Entries
		}
	}
	return result
}

// resolve returns the outcome of a transaction that this server decides. A pending transaction continues, unless the
// caller names the log entry of its last step. No clock is read here:
//
//  1. A router prepares at log entry 7. The keeper of every replica sees that, and counts 5 s on its monotonic
//     clock.
//  2. The router continues at entry 9. A keeper that resolves with entry 7 changes nothing, whatever the order of
//     the two records.
//  3. The router dies. Whatever the wall clocks do, a keeper that has counted 5 s resolves with entry 9, and every
//     replica applies the same outcome.
func (s *State) resolve(c metadata.Command, step metadata.Step, h *lockTable, p *txnPart) metadata.Result {
	w := s.watches[step.Txn]
	switch {
	case p == nil && w != nil && (step.Entry == w.since || step.Entry == 0 && c.Time > w.expires):
		delete(s.watches, step.Txn)
		s.setParts(h.txns)
		return metadata.Result{Data: []byte(metadata.Aborted)}
	case p == nil && w != nil:
		return metadata.Result{Data: []byte(metadata.Pending)}
	case p != nil && p.Committed:
		return metadata.Result{Data: []byte(metadata.Committed)}
	case p != nil && p.Coordinator != "":
		return metadata.Result{Err: fmt.Errorf("%w step: the coordinator is %s", metadata.ErrInvalid, p.Coordinator)}
	case p != nil && step.Entry != p.Since && (step.Entry != 0 || c.Time < p.Expires):
		return metadata.Result{Data: []byte(metadata.Pending)}
	}
	s.removePart(h, p)
	return metadata.Result{Data: []byte(metadata.Aborted)}
}

// txnPart is this server's part of a transaction. It is immutable.
type txnPart struct {
	metadata.Txn
	Batch []byte `json:"batch,omitempty"` // commands that finish runs
	// Expires is the end of the lease on the wall clock of the record's author, in ns since 1970. It only applies to
	// records from before leases were counted from log entries: they must be replayed with the same outcome.
	Expires int64 `json:"expires"`

	// The following fields describe a watch, which holds no locks. Only snapshots have them.
	Watch   string          `json:"watch,omitempty"`
	Changed map[string]bool `json:"changed,omitempty"`
	Lost    bool            `json:"lost,omitempty"`
}

// lockTable has the transactions of a server. It is immutable; changed is closed when another table replaces it.
type lockTable struct {
	txns     []*txnPart // by name
	watches  []metadata.Txn
	applying bool // a transaction's commands are running: the tree is inconsistent
	changed  chan struct{}
}

func newLockTable(parts []*txnPart) *lockTable {
	return &lockTable{txns: parts, changed: make(chan struct{})}
}

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

// checkChange returns an error if a change must wait, because it touches a locked path or removes the way to one.
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

func removesSubtree(c metadata.Command) bool {
	switch c.Op {
	case metadata.Move, metadata.Remove, metadata.Rmdir, metadata.Delegate, metadata.Adopt:
		return true
	}
	return false
}

// checkRead returns an error if a read must wait, because another server may already have decided a transaction that
// changes the path. For transactions that this server decides, reads return the old state until then.
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
