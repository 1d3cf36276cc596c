package consensus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

type outcome struct {
	index uint64
	err   error
}

// Propose appends data to the log and returns its index once it is committed and on this member's disk. Proposals of many
// goroutines are batched and pipelined. A follower forwards them, and sends them to the next leader if one fails. Each is in
// the log at most once.
//
// An error matches ErrNotDone or ErrInDoubt. The context should have a deadline: without a leader Propose waits for one.
func (n *Node) Propose(ctx context.Context, data []byte) (index uint64, err error) {
	if len(data) > MaxEntry {
		return 0, notDone(fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(data), MaxEntry))
	}
	return n.await(ctx, func(done func(uint64, error)) *proposal { return n.m.propose(data, done) })
}

func (n *Node) await(ctx context.Context, begin func(done func(uint64, error)) *proposal) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, notDone(err)
	}
	result := make(chan outcome, 1)
	var p *proposal
	if !n.post(func() { p = begin(func(index uint64, err error) { result <- outcome{index, err} }) }) {
		return 0, notDone(n.closed())
	}
	cancel := ctx.Done()
	for {
		select {
		case r := <-result:
			return r.index, r.err
		case <-cancel:
			cancel = nil
			n.post(func() { n.m.cancelProposal(p, context.Cause(ctx)) })
		case <-n.done:
			select {
			case r := <-result:
				return r.index, r.err
			default: // the node ended before it handled the proposal
				return 0, notDone(n.closed())
			}
		}
	}
}

// Entries returns committed entries from index from on: at least one, then as many as fit into most bytes of data. It
// waits for the first to be committed. The first index of a log is 1. It returns a *CompactedError if the log begins
// later.
func (n *Node) Entries(ctx context.Context, from uint64, most int) ([]Entry, error) {
	for {
		n.mu.Lock()
		more, witness := n.more, n.view.self.Role == Witness
		n.mu.Unlock()
		if witness {
			return nil, ErrWitness
		}
		if commit := n.published.Load(); from <= commit {
			entries, err := n.read(from, commit, most)
			if len(entries) > 0 || err != nil {
				return entries, err
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.done:
			return nil, n.closed()
		}
	}
}

// read returns entries up to commit, or none if no visible one exists.
func (n *Node) read(from, commit uint64, most int) ([]Entry, error) {
	first, err := n.log.FirstIndex()
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	if from < first && first == 2 {
		// Consumers never see entry 1, which stands for the first membership.
		from = 2
	}
	if from > commit {
		return nil, nil
	}
	if most <= 0 {
		most = 1 << 20
	}
	found, err := n.log.Entries(from, commit+1, uint64(most))
	switch {
	case errors.Is(err, raft.ErrCompacted):
		if first, err = n.log.FirstIndex(); err == nil {
			err = &CompactedError{First: first}
		}
		return nil, err
	case errors.Is(err, raft.ErrUnavailable):
		return nil, nil // a snapshot has just replaced the log
	case err != nil:
		return nil, fmt.Errorf("reading entry %d: %w", from, err)
	}
	entries := make([]Entry, len(found))
	for i, e := range found {
		entries[i] = Entry{Index: e.GetIndex(), Term: e.GetTerm()}
		if e.GetType() == raftpb.EntryNormal && len(e.GetData()) >= idSize {
			entries[i].Data = e.GetData()[idSize:]
		}
	}
	return entries, nil
}

// ReadIndex returns an index: a state with that index applied reflects every proposal that any member acknowledged before
// the call. It takes a round trip from the leader to a majority, which all waiting callers share.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	result := make(chan outcome, 1)
	r := &read{canceled: ctx.Err, done: func(index uint64, err error) { result <- outcome{index, err} }}
	if !n.post(func() { n.m.readIndex(r) }) {
		return 0, n.closed()
	}
	select {
	case o := <-result:
		return o.index, o.err
	case <-ctx.Done():
		if _, ok := n.Leader(); !ok {
			return 0, fmt.Errorf("no leader is known: %w", context.Cause(ctx))
		}
		return 0, context.Cause(ctx)
	case <-n.done:
		return 0, n.closed()
	}
}

// Commit returns the last index that Entries returns without waiting.
func (n *Node) Commit() uint64 { return n.published.Load() }

// Applied reports that the consumer has durably applied all entries up to index. The index may move backwards if the
// consumer lost its state.
func (n *Node) Applied(index uint64) {
	n.applied.Store(index)
	n.post(func() { n.m.setApplied(n.cfg.Self.ID, n.applied.Load()) })
}

// Leader returns the leader, if one is known.
func (n *Node) Leader() (Member, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.view.members {
		if m.ID == n.view.lead {
			return m, true
		}
	}
	return Member{}, false
}

// Changed returns a channel that is closed at the next change of leader or membership.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Members returns the members in order of their identifiers.
func (n *Node) Members() []Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.view.members)
}

// Self returns this member as the membership describes it.
func (n *Node) Self() Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.self
}

// Add makes m a member, or changes the address, name, site or role of an existing one, and returns once the change is
// committed. A new voter or witness starts as a learner. The leader promotes it when it has caught up.
func (n *Node) Add(ctx context.Context, m Member) error {
	if err := checkMember(m); err != nil {
		return notDone(err)
	}
	return n.change(ctx, confChange{Op: opSet, Member: m})
}

// Remove removes a member from the cluster. Its identifier cannot be used again.
func (n *Node) Remove(ctx context.Context, id uint64) error {
	return n.change(ctx, confChange{Op: opRemove, Member: Member{ID: id}})
}

func (n *Node) change(ctx context.Context, ch confChange) error {
	_, err := n.await(ctx, func(done func(uint64, error)) *proposal { return n.m.proposeChange(ch, done) })
	if err != nil {
		return fmt.Errorf("changing the membership of %d: %w", ch.Member.ID, err)
	}
	return nil
}

// Transfer makes a voter the leader and returns when it leads.
func (n *Node) Transfer(ctx context.Context, id uint64) error {
	for {
		changed := n.Changed()
		lead, ok := n.Leader()
		if ok && lead.ID == id {
			return nil
		}
		var votes bool
		var timeout int64
		if !n.call(func() {
			votes = n.m.membership.conf.votes(id)
			n.m.requestTransfer(id)
			timeout = n.election.Load()
		}) {
			return n.closed()
		}
		if !votes {
			return fmt.Errorf("passing the leadership to %d: %w that votes", id, ErrNotMember)
		}
		// An attempt ends within an election timeout.
		if err := n.waitFor(ctx, changed, 2*timeout); err != nil {
			return fmt.Errorf("passing the leadership to %d: %w", id, err)
		}
	}
}
