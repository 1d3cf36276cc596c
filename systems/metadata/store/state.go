package store

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/tree"
)

// State implements changelog.StateMachine: the tree and the unfinished transactions with other servers.
type State struct {
	tree    atomic.Pointer[tree.Tree]
	locks   atomic.Pointer[lockTable]
	watches map[string]*watch
	index   uint64 // of the record that is being applied
	applied atomic.Uint64
	// outcomes belong to the machine's methods, too.
	outcomes *outcomeCache
}

func NewState() *State {
	s := &State{watches: make(map[string]*watch), outcomes: newOutcomeCache()}
	s.tree.Store(tree.New())
	s.locks.Store(newLockTable(nil))
	return s
}

func (s *State) Tree() *tree.Tree { return s.tree.Load() }

// Apply implements changelog.StateMachine. The record is a batch of commands; the result is a []metadata.Result. A malformed
// record changes nothing. After a command that needs a locked path, the rest of the batch does not run.
func (s *State) Apply(index uint64, record []byte) any {
	s.index = index
	defer s.applied.Store(index)
	results := make([]metadata.Result, 0, 1)
	var barred *metadata.HeldError
	err := metadata.ParseBatch(record, func(c metadata.Command) {
		if barred != nil {
			results = append(results, metadata.Result{Err: barred})
			return
		}
		r := s.applyOnce(c)
		errors.As(r.Err, &barred)
		results = append(results, r)
	})
	if err != nil {
		results = append(results, metadata.Result{Err: err})
	}
	return results
}

// applyOnce applies a command with an identity once. Waiting for a transaction does not count as applied.
func (s *State) applyOnce(c metadata.Command) metadata.Result {
	if c.Identity == "" {
		return s.applyCommand(c)
	}
	if r, known := s.outcomes.lookup(c); known {
		return r
	}
	r := s.applyCommand(c)
	if !errors.As(r.Err, new(*metadata.HeldError)) {
		s.outcomes.remember(c, s.index, r)
	}
	return r
}

func (s *State) applyCommand(c metadata.Command) metadata.Result {
	if c.Op == metadata.Transact {
		return s.transact(c)
	}
	if err := s.locks.Load().checkChange(c); err != nil {
		return metadata.Result{Err: err}
	}
	return s.applyChange(c)
}

// outcomesMarker is the first byte of a snapshot that begins with outcomes.
const outcomesMarker = 0x81

// partsMarker begins transactions in a snapshot. The tree's version, which begins others, is smaller.
const partsMarker = 0x80

func (s *State) Snapshot() (changelog.Snapshot, error) {
	t, err := s.Tree().Snapshot()
	if err != nil {
		return nil, err
	}
	return snapshot{t, append(s.exportWatches(), s.locks.Load().txns...), s.outcomes.snapshot()}, nil
}

type snapshot struct {
	*tree.Snapshot
	parts  []*txnPart
	memory *outcomeImage
}

// Write writes the outcomes and the transactions (each: marker, length as uvarint, JSON) and the tree.
func (s snapshot) Write(w io.Writer) error {
	if s.memory != nil {
		text, err := s.memory.encode()
		if err != nil {
			return fmt.Errorf("writing remembered changes: %w", err)
		}
		if _, err := w.Write(append(binary.AppendUvarint([]byte{outcomesMarker}, uint64(len(text))), text...)); err != nil {
			return err
		}
	}
	if len(s.parts) > 0 {
		text, err := json.Marshal(s.parts)
		if err != nil {
			return fmt.Errorf("writing the transactions: %w", err)
		}
		if _, err := w.Write(append(binary.AppendUvarint([]byte{partsMarker}, uint64(len(text))), text...)); err != nil {
			return err
		}
	}
	return s.Snapshot.Write(w)
}

func (s *State) Restore(r io.Reader) error {
	b := bufio.NewReader(r)
	first, err := b.Peek(1)
	if err != nil {
		return fmt.Errorf("reading a tree: %w: unexpected end", tree.ErrSnapshot)
	}
	memory := newOutcomeCache()
	if first[0] == outcomesMarker {
		if memory, err = readOutcomes(b); err != nil {
			return err
		}
		if first, err = b.Peek(1); err != nil {
			return fmt.Errorf("reading a tree: %w: unexpected end", tree.ErrSnapshot)
		}
	}
	var parts []*txnPart
	if first[0] == partsMarker {
		if parts, err = readParts(b); err != nil {
			return err
		}
	}
	t, err := tree.Load(b)
	if err == nil {
		s.tree.Store(t)
		s.outcomes = memory
		parts, s.watches = splitWatches(parts)
		s.setParts(parts)
	}
	return err
}

func readOutcomes(b *bufio.Reader) (*outcomeCache, error) {
	if _, err := b.Discard(1); err != nil {
		return nil, err
	}
	n, err := binary.ReadUvarint(b)
	if err != nil {
		return nil, fmt.Errorf("reading remembered changes: %w: %w", tree.ErrSnapshot, err)
	}
	text, err := io.ReadAll(io.LimitReader(b, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("reading remembered changes: %w: %w", tree.ErrSnapshot, err)
	}
	r, err := decodeOutcomes(text)
	if err != nil {
		return nil, fmt.Errorf("reading remembered changes: %w: %w", tree.ErrSnapshot, err)
	}
	return r, nil
}

func readParts(b *bufio.Reader) (parts []*txnPart, err error) {
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
