package store

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"skerry/internal/metadata"
	"skerry/internal/metadata/journal"
	"skerry/internal/metadata/tree"
)

// State is the tree, and the transactions with other servers that are under way, as a
// journal.Machine.
type State struct {
	tree atomic.Pointer[tree.Tree]
	held atomic.Pointer[held]
	// watches are by transaction. Only who calls the machine's methods has them.
	watches map[string]*watch
}

// NewState is a tree with nothing but a root.
func NewState() *State {
	s := &State{watches: make(map[string]*watch)}
	s.tree.Store(tree.New())
	s.held.Store(newHeld(nil))
	return s
}

// Tree is the tree as it is; Restore puts another in its place.
func (s *State) Tree() *tree.Tree { return s.tree.Load() }

// Apply is journal.Machine's: the record is a batch of commands, the result a
// []metadata.Result. A record that is none changes nothing. Where a command meets what a
// transaction holds, it and those behind it are not run.
func (s *State) Apply(_ uint64, record []byte) any {
	results := make([]metadata.Result, 0, 1)
	var barred *metadata.Held
	err := metadata.ParseBatch(record, func(c metadata.Command) {
		if barred != nil {
			results = append(results, metadata.Result{Err: barred})
			return
		}
		r := s.do(c)
		errors.As(r.Err, &barred)
		results = append(results, r)
	})
	if err != nil {
		results = append(results, metadata.Result{Err: err})
	}
	return results
}

func (s *State) do(c metadata.Command) metadata.Result {
	if c.Op == metadata.Transact {
		return s.transact(c)
	}
	if err := s.held.Load().bars(c); err != nil {
		return metadata.Result{Err: err}
	}
	return s.change(c)
}

// withParts is the first byte of a snapshot that has transactions before its tree. One
// without them begins with the tree's own, which is less.
const withParts = 0x80

// Snapshot is journal.Machine's.
func (s *State) Snapshot() (journal.Snapshot, error) {
	t, err := s.Tree().Snapshot()
	if err != nil {
		return nil, err
	}
	return snapshot{t, append(s.watchParts(), s.held.Load().parts...)}, nil
}

type snapshot struct {
	*tree.Snapshot
	parts []*part
}

// Write writes withParts, the transactions in JSON with their length (uvarint) before them,
// and the tree.
func (s snapshot) Write(w io.Writer) error {
	if len(s.parts) > 0 {
		text, err := json.Marshal(s.parts)
		if err != nil {
			return fmt.Errorf("writing the transactions: %w", err)
		}
		if _, err := w.Write(append(binary.AppendUvarint([]byte{withParts}, uint64(len(text))), text...)); err != nil {
			return err
		}
	}
	return s.Snapshot.Write(w)
}

// Restore is journal.Machine's.
func (s *State) Restore(r io.Reader) error {
	b := bufio.NewReader(r)
	first, err := b.Peek(1)
	if err != nil {
		return fmt.Errorf("reading a tree: %w: it ends too early", tree.ErrSnapshot)
	}
	var parts []*part
	if first[0] == withParts {
		if parts, err = readParts(b); err != nil {
			return err
		}
	}
	t, err := tree.Load(b)
	if err == nil {
		s.tree.Store(t)
		parts, s.watches = watchesOf(parts)
		s.hold(parts)
	}
	return err
}

func readParts(b *bufio.Reader) (parts []*part, err error) {
	if _, err := b.Discard(1); err != nil {
		return nil, err
	}
	n, err := binary.ReadUvarint(b)
	if err != nil {
		return nil, fmt.Errorf("reading the transactions: %w: %w", tree.ErrSnapshot, err)
	}
	if err = json.NewDecoder(io.LimitReader(b, int64(n))).Decode(&parts); err != nil {
		return nil, fmt.Errorf("reading the transactions: %w: %w", tree.ErrSnapshot, err)
	}
	return parts, nil
}
