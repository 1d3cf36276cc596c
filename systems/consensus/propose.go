package consensus

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Each proposal has an identity in its entry: epoch and seq. A follower sends it to the leader of its term, and only that
// leader may append it, in that term only.
//
// Invariant: a proposal is at most once in the log. It is certainly not in the log if
//
//   - the leader refused it in that term, or
//   - an entry of a later term is committed, and the proposal is not before that entry.
//
// Only in these cases the member proposes it again. Messages lost within a term are sent again with the same term. The
// leader knows what it has appended in its term, and ignores the repetition.
const (
	idSize = 16
	// maxBatch is about how many bytes of entries go to raft, or the leader, at once.
	maxBatch = 512 << 10
)

type proposal struct {
	seq     uint64
	conf    *confChange // or nil
	data    []byte      // with its identity
	term    uint64      // in which it was sent to a leader, 0 if no leader may have it
	attempt uint64      // counts refusals
	sent    int         // tick
	done    func(index uint64, err error)
}

type resolution struct {
	p     *proposal
	index uint64
	err   error
}

type proposalQueue struct {
	seq     uint64
	pending map[uint64]*proposal
	queue   []*proposal // to be proposed, in order
	again   bool        // something changed, so the queue may be sent
	held    int         // tick until which nothing is sent, because the log is about to skip ahead
}

func (p *proposalQueue) init() { p.pending = map[uint64]*proposal{} }

type forward struct {
	term  uint64
	epoch uint64
	low   uint64 // no proposal before this one is unresolved
	items []item
}

type item struct {
	seq     uint64
	attempt uint64
	conf    bool
	data    []byte
}

// refusal is a leader's promise that it has not appended proposals in its term and never will.
type refusal struct {
	term  uint64
	epoch uint64
	items []refused
}

type refused struct {
	seq     uint64
	attempt uint64
	reason  string // why it is of no use to try again; empty: it may be
}

// propose starts a proposal. The driver calls done once, from output.resolved.
func (m *machine) propose(data []byte, done func(uint64, error)) *proposal {
	m.proposals.seq++
	b := make([]byte, idSize, idSize+len(data))
	binary.LittleEndian.PutUint64(b, m.cfg.epoch)
	binary.LittleEndian.PutUint64(b[8:], m.proposals.seq)
	return m.enqueue(&proposal{seq: m.proposals.seq, data: append(b, data...), done: done})
}

func (m *machine) proposeChange(ch confChange, done func(uint64, error)) *proposal {
	m.proposals.seq++
	ch.Epoch, ch.Seq = m.cfg.epoch, m.proposals.seq
	p := &proposal{seq: m.proposals.seq, conf: &ch, done: done}
	data, err := json.Marshal(ch)
	if err != nil {
		m.finishProposal(p, 0, notDone(err))
		return p
	}
	p.data = data
	return m.enqueue(p)
}

func (m *machine) enqueue(p *proposal) *proposal {
	m.proposals.pending[p.seq] = p
	m.proposals.queue = append(m.proposals.queue, p)
	m.proposals.again = true
	return p
}

func (m *machine) finishProposal(p *proposal, index uint64, err error) {
	if m.proposals.pending[p.seq] == p {
		delete(m.proposals.pending, p.seq)
	}
	m.out.resolved = append(m.out.resolved, resolution{p, index, err})
}

func (m *machine) cancelProposal(p *proposal, why error) {
	if m.proposals.pending[p.seq] != p {
		return
	}
	if p.term != 0 {
		m.finishProposal(p, 0, inDoubt(why))
		return
	}
	if m.leaderID == raft.None {
		why = fmt.Errorf("no leader is known: %w", why)
	}
	m.finishProposal(p, 0, notDone(why))
}

func (m *machine) resolveEntry(index uint64, data []byte) {
	if len(data) >= idSize {
		m.resolveProposal(binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:]), index)
	}
}

func (m *machine) resolveProposal(epoch, seq, index uint64) {
	if epoch != m.cfg.epoch {
		return
	}
	if p, ok := m.proposals.pending[seq]; ok {
		m.finishProposal(p, index, nil)
	}
}

// requeueOlderTerms proposes again what leaders of earlier terms did not append.
func (m *machine) requeueOlderTerms(term uint64) {
	m.requeue(func(p *proposal) bool { return p.term != 0 && p.term < term })
}

func (m *machine) requeue(which func(*proposal) bool) {
	var again []*proposal
	for seq := range m.pendingInOrder() {
		if p := m.proposals.pending[seq]; p != nil && which(p) {
			p.term = 0
			p.attempt++
			again = append(again, p)
		}
	}
	m.proposals.queue = append(again, m.proposals.queue...)
	m.proposals.again = true
}

// failSkipped resolves, as in doubt, proposals that may be between the last entry seen and a snapshot of a term.
func (m *machine) failSkipped(term uint64) {
	for seq := range m.pendingInOrder() {
		if p := m.proposals.pending[seq]; p != nil && p.term != 0 && p.term <= term {
			m.finishProposal(p, 0, inDoubt(errors.New("the log went on without this member")))
		}
	}
}

// holdProposals delays proposals for ticks or until a snapshot is in force: positions that the log skips are in doubt.
func (m *machine) holdProposals(ticks int) {
	m.proposals.held = m.ticks + ticks
	m.proposals.again = true
}

func (m *machine) lowestPending() uint64 {
	low := uint64(math.MaxUint64)
	for seq := range m.proposals.pending {
		low = min(low, seq)
	}
	return low
}

// delaysBatch reports whether the leader delays proposals because its disk writes the previous batch. A single proposal
// finds the disk idle and is appended at once. Many proposals wait for one fsync at most, and share messages, writes and
// fsyncs of all members.
func (m *machine) delaysBatch() bool {
	return m.leaderID == m.cfg.id && m.space.err == nil && len(m.space.unconfirmed) > 0
}

func (m *machine) flushProposals() {
	if !m.proposals.again || m.delaysBatch() {
		return
	}
	m.proposals.again = false
	if m.ticks < m.proposals.held || m.leaderID == raft.None || len(m.proposals.queue) == 0 {
		return
	}
	var batch, changes []*proposal
	size := 0
	queue := m.proposals.queue
	m.proposals.queue = nil
	for i, p := range queue {
		if m.proposals.pending[p.seq] != p {
			continue
		}
		if p.conf != nil {
			changes = append(changes, p)
			continue
		}
		batch = append(batch, p)
		if size += len(p.data); size < maxBatch && i < len(queue)-1 {
			continue
		}
		m.sendToLeader(batch)
		batch, size = nil, 0
	}
	if len(batch) > 0 {
		m.sendToLeader(batch)
	}
	for _, p := range changes {
		m.sendToLeader([]*proposal{p})
	}
}

func (m *machine) sendToLeader(batch []*proposal) {
	f := &forward{term: m.term, epoch: m.cfg.epoch, items: make([]item, len(batch))}
	for i, p := range batch {
		p.term, p.sent = m.term, m.ticks
		f.items[i] = item{p.seq, p.attempt, p.conf != nil, p.data}
	}
	if m.leaderID == m.cfg.id {
		if r := m.appendForwarded(m.cfg.id, f); r != nil {
			m.handleRefusal(r)
		}
		return
	}
	f.low = m.lowestPending()
	m.out.messages = append(m.out.messages, message{to: m.leaderID, forward: f})
}

// resendProposals repeats proposals that the leader of this term has not confirmed for an election timeout.
func (m *machine) resendProposals() {
	if m.leaderID == raft.None || m.leaderID == m.cfg.id || m.ticks%electionTicks != 0 {
		return
	}
	var late []*proposal
	for seq := range m.pendingInOrder() {
		if p := m.proposals.pending[seq]; p != nil && p.term == m.term && m.ticks-p.sent >= electionTicks {
			late = append(late, p)
		}
	}
	for len(late) > 0 {
		n, size := 0, 0
		for n < len(late) && (n == 0 || size < maxBatch) {
			size += len(late[n].data)
			n++
		}
		m.sendToLeader(late[:n])
		late = late[n:]
	}
}

func (m *machine) handleRefusal(r *refusal) {
	if r.epoch != m.cfg.epoch {
		return
	}
	for _, it := range r.items {
		p := m.proposals.pending[it.seq]
		if p == nil || p.term != r.term || p.attempt != it.attempt {
			continue
		}
		p.term = 0
		p.attempt++
		if it.reason != "" {
			m.finishProposal(p, 0, notDone(refusedError(it.reason)))
			continue
		}
		// The next tick sends it again. Sending at once would be a busy loop.
		m.proposals.queue = append(m.proposals.queue, p)
	}
}

func refusedError(reason string) error {
	for _, known := range []error{ErrLogFull, ErrStorage} {
		if reason == known.Error() {
			return known
		}
	}
	return errors.New(reason)
}

func (m *machine) buildEntry(it item) (*raftpb.Entry, error) {
	if !it.conf {
		return &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Data: it.data}, nil
	}
	var ch confChange
	if err := json.Unmarshal(it.data, &ch); err != nil {
		return nil, fmt.Errorf("change of membership: %w", err)
	}
	if err := m.membership.conf.validate(ch); err != nil {
		return nil, err
	}
	data, err := proto.Marshal(m.membership.conf.raftChange(ch, it.data))
	if err != nil {
		return nil, fmt.Errorf("change of membership: %w", err)
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Data: data}, nil
}
