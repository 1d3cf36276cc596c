package hydra

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"skerry/systems/consensus"
)

// sharedLog is an in-memory replicated log. The only faults are those that a test injects.
type sharedLog struct {
	mu      sync.Mutex
	entries []consensus.Entry
	first   uint64
	name    string
	changed chan struct{}
	members []*memLog
}

func newSharedLog() *sharedLog { return &sharedLog{first: 1, changed: make(chan struct{})} }

func (s *sharedLog) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// compact drops entries up to an index.
func (s *sharedLog) compact(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = index + 1
	s.notify()
}

// memLog is one member's view of a sharedLog.
type memLog struct {
	*sharedLog
	self consensus.Member
	node *Node
	// held is the first index that this member's Entries withholds; 0: none.
	held    uint64
	applied uint64
	// away reports whether the other members cannot reach it.
	away bool
	done chan struct{}
	told chan struct{}
	// deaf suppresses notifications to this member; heeds is set once it has subscribed.
	deaf, heeds bool
}

var _ Log = (*memLog)(nil)

func (s *sharedLog) member(m consensus.Member) *memLog {
	l := &memLog{sharedLog: s, self: m, done: make(chan struct{}), told: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = append(s.members, l)
	return l
}

// hold withholds all entries after the last one from this member's database.
func (l *memLog) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = uint64(len(l.entries)) + 1
}

// holdFrom withholds the entries from index on, which the database may already have applied.
func (l *memLog) holdFrom(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = index
}

func (l *memLog) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = 0
	l.notify()
}

func (l *memLog) Propose(_ context.Context, data []byte) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	index := uint64(len(l.entries)) + 1
	l.entries = append(l.entries, consensus.Entry{Index: index, Term: 1, Data: slices.Clone(data)})
	l.notify()
	return index, nil
}

func (l *memLog) Entries(ctx context.Context, from uint64, most int) ([]consensus.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		end := uint64(len(l.entries))
		if l.held != 0 && most == maxBatch { // the caller is the applier
			end = min(end, l.held-1)
		}
		switch {
		case from < l.first:
			return nil, &consensus.CompactedError{First: l.first}
		case from <= end:
			return slices.Clone(l.entries[from-1 : end]), nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (l *memLog) Commit() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.entries))
}

// Identity implements Log.
func (l *memLog) Identity() consensus.Identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return consensus.Identity{Log: cmp.Or(l.name, "memory"), Known: true}
}

func (l *memLog) ReadIndex(context.Context) (uint64, error) { return l.Commit(), nil }

func (l *memLog) Applied(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applied = index
}

func (l *memLog) Subscribe(uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heeds = !l.deaf
	l.signal()
	return l.heeds
}

func (l *memLog) NotifySubscribers() {
	for _, o := range l.all() {
		o.mu.Lock()
		o.signal()
		o.mu.Unlock()
	}
}

func (l *memLog) signal() {
	if l.heeds {
		select {
		case l.told <- struct{}{}:
		default:
		}
	}
}

func (l *memLog) Notified() <-chan struct{} { return l.told }

func (l *memLog) Fetch(ctx context.Context, _ uint64) (uint64, error) {
	for _, o := range l.all() {
		if o.self.Site == l.self.Site || o.node == nil {
			continue
		}
		var b bytes.Buffer
		index, err := o.node.Save(ctx, &b)
		if err != nil {
			return 0, err
		}
		return index, l.node.Load(ctx, index, io.Reader(&b))
	}
	return 0, errors.New("no member has a state")
}

func (l *memLog) all() []*memLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sharedLog.members)
}

func (l *memLog) Leader() (consensus.Member, bool) { return l.all()[0].self, true }

func (l *memLog) Members() (list []consensus.Member) {
	for _, o := range l.all() {
		list = append(list, o.self)
	}
	return list
}

func (l *memLog) Self() consensus.Member { return l.self }

func (l *memLog) Status() consensus.Status {
	s := consensus.Status{Self: l.self, State: "follower", Leader: l.all()[0].self.ID, Term: 1, Commit: l.Commit(), Last: l.Commit()}
	l.mu.Lock()
	s.First = l.first
	l.mu.Unlock()
	for _, o := range l.all() {
		l.mu.Lock()
		s.Members = append(s.Members, consensus.MemberStatus{Member: o.self, Votes: true, Connected: !o.away || o == l})
		l.mu.Unlock()
	}
	return s
}

func (l *memLog) Add(context.Context, consensus.Member) error { return consensus.ErrClosed }
func (l *memLog) Remove(context.Context, uint64) error        { return consensus.ErrClosed }
func (l *memLog) Transfer(context.Context, uint64) error      { return consensus.ErrClosed }
func (l *memLog) Done() <-chan struct{}                       { return l.done }
func (l *memLog) Err() error                                  { return nil }
func (l *memLog) Close() error                                { return nil }
