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

// Each proposal has an identity, epoch and seq, in its entry. A follower sends it to the
// leader of its term, and only that leader may append it, in that term only. So it is at
// most once in the log, and certainly not in it when
//
//   - the leader refused it in that term, or
//   - an entry of a later term is committed and it is not before that entry.
//
// In both cases the member proposes it again. What was lost on the way within one term
// is sent again with the same term; the leader knows what it has appended in its term.
const (
	idSize = 16
	// maxBatch is about how many bytes of entries go to raft, or the leader, at once.
	maxBatch = 512 << 10
)

// proposal is one of this member's that is not resolved yet.
type proposal struct {
	seq     uint64
	conf    *confChange // or nil
	data    []byte      // with its identity
	term    uint64      // in which it was proposed; 0: it is in no leader's hands
	attempt uint64      // counts refusals
	sent    int         // tick
	done    func(index uint64, err error)
}

// resolution tells a proposer what became of its proposal.
type resolution struct {
	p     *proposal
	index uint64
	err   error
}

// proposalQueue are this member's.
type proposalQueue struct {
	seq     uint64
	pending map[uint64]*proposal
	queue   []*proposal // to be proposed, in order
	again   bool        // something changed: the queue may move
	held    int         // tick until which it does not: the log is about to jump ahead
}

func (p *proposalQueue) init() { p.pending = map[uint64]*proposal{} }

// forward takes proposals to the leader of a term.
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

// refusal tells that a leader did not and will not append proposals in its term.
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

// propose begins a proposal; done is called once through output.resolved.
func (m *machine) propose(data []byte, done func(uint64, error)) *proposal {
	m.props.seq++
	b := make([]byte, idSize, idSize+len(data))
	binary.LittleEndian.PutUint64(b, m.cfg.epoch)
	binary.LittleEndian.PutUint64(b[8:], m.props.seq)
	return m.enqueue(&proposal{seq: m.props.seq, data: append(b, data...), done: done})
}

// proposeChange begins a change of membership.
func (m *machine) proposeChange(ch confChange, done func(uint64, error)) *proposal {
	m.props.seq++
	ch.Epoch, ch.Seq = m.cfg.epoch, m.props.seq
	p := &proposal{seq: m.props.seq, conf: &ch, done: done}
	data, err := json.Marshal(ch)
	if err != nil {
		m.finishProposal(p, 0, notDone(err))
		return p
	}
	p.data = data
	return m.enqueue(p)
}

func (m *machine) enqueue(p *proposal) *proposal {
	m.props.pending[p.seq] = p
	m.props.queue = append(m.props.queue, p)
	m.props.again = true
	return p
}

func (m *machine) finishProposal(p *proposal, index uint64, err error) {
	if m.props.pending[p.seq] == p {
		delete(m.props.pending, p.seq)
	}
	m.out.resolved = append(m.out.resolved, resolution{p, index, err})
}

// cancelProposal gives a proposal up because of why.
func (m *machine) cancelProposal(p *proposal, why error) {
	if m.props.pending[p.seq] != p {
		return
	}
	if p.term != 0 {
		m.finishProposal(p, 0, inDoubt(why))
		return
	}
	if m.lead == raft.None {
		why = fmt.Errorf("no leader is known: %w", why)
	}
	m.finishProposal(p, 0, notDone(why))
}

// resolveEntry resolves the proposal of an entry.
func (m *machine) resolveEntry(index uint64, data []byte) {
	if len(data) >= idSize {
		m.resolveProposal(binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:]), index)
	}
}

func (m *machine) resolveProposal(epoch, seq, index uint64) {
	if epoch != m.cfg.epoch {
		return
	}
	if p, ok := m.props.pending[seq]; ok {
		m.finishProposal(p, index, nil)
	}
}

// requeueOlderTerms takes back what leaders of earlier terms did not bring into the log.
func (m *machine) requeueOlderTerms(term uint64) {
	m.requeue(func(p *proposal) bool { return p.term != 0 && p.term < term })
}

// requeue queues unresolved proposals again, in their order.
func (m *machine) requeue(which func(*proposal) bool) {
	var again []*proposal
	for seq := range m.pendingInOrder() {
		if p := m.props.pending[seq]; p != nil && which(p) {
			p.term = 0
			p.attempt++
			again = append(again, p)
		}
	}
	m.props.queue = append(again, m.props.queue...)
	m.props.again = true
}

// failSkipped gives up what the log may have had between the last entry seen and a snapshot of
// a term.
func (m *machine) failSkipped(term uint64) {
	for seq := range m.pendingInOrder() {
		if p := m.props.pending[seq]; p != nil && p.term != 0 && p.term <= term {
			m.finishProposal(p, 0, inDoubt(errors.New("the log went on without this member")))
		}
	}
}

// holdProposals keeps proposals back for some ticks, or until a snapshot is in force: what is
// proposed while the log jumps over its place would be in doubt.
func (m *machine) holdProposals(ticks int) {
	m.props.held = m.ticks + ticks
	m.props.again = true
}

// lowestPending is the first proposal that is not resolved.
func (m *machine) lowestPending() uint64 {
	low := uint64(math.MaxUint64)
	for seq := range m.props.pending {
		low = min(low, seq)
	}
	return low
}

// delaysBatch tells whether a leader leaves proposals for its next batch: while its disk writes the
// one before. A proposal that comes alone finds the disk idle and goes at once; many wait for
// no more than one fsync and share messages, writes and fsyncs of all members.
func (m *machine) delaysBatch() bool {
	return m.lead == m.cfg.id && m.storage == nil && len(m.writing) > 0
}

// flushProposals moves the queue to the leader.
func (m *machine) flushProposals() {
	if !m.props.again || m.delaysBatch() {
		return
	}
	m.props.again = false
	if m.ticks < m.props.held || m.lead == raft.None || len(m.props.queue) == 0 {
		return
	}
	var batch, changes []*proposal
	size := 0
	queue := m.props.queue
	m.props.queue = nil
	for i, p := range queue {
		if m.props.pending[p.seq] != p {
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

// sendToLeader gives proposals of one kind to the leader, here or elsewhere.
func (m *machine) sendToLeader(batch []*proposal) {
	f := &forward{term: m.term, epoch: m.cfg.epoch, items: make([]item, len(batch))}
	for i, p := range batch {
		p.term, p.sent = m.term, m.ticks
		f.items[i] = item{p.seq, p.attempt, p.conf != nil, p.data}
	}
	if m.lead == m.cfg.id {
		if r := m.appendForwarded(m.cfg.id, f); r != nil {
			m.handleRefusal(r)
		}
		return
	}
	f.low = m.lowestPending()
	m.out.messages = append(m.out.messages, message{to: m.lead, forward: f})
}

// resendProposals repeats what the leader of the term has had for an election timeout without
// any sign of it: it may never have arrived.
func (m *machine) resendProposals() {
	if m.lead == raft.None || m.lead == m.cfg.id || m.ticks%electionTicks != 0 {
		return
	}
	var late []*proposal
	for seq := range m.pendingInOrder() {
		if p := m.props.pending[seq]; p != nil && p.term == m.term && m.ticks-p.sent >= electionTicks {
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

// handleRefusal takes back proposals that a leader refused.
func (m *machine) handleRefusal(r *refusal) {
	if r.epoch != m.cfg.epoch {
		return
	}
	for _, it := range r.items {
		p := m.props.pending[it.seq]
		if p == nil || p.term != r.term || p.attempt != it.attempt {
			continue
		}
		p.term = 0
		p.attempt++
		if it.reason != "" {
			m.finishProposal(p, 0, notDone(refusedError(it.reason)))
			continue
		}
		// The next tick tries again: at once would be a busy loop.
		m.props.queue = append(m.props.queue, p)
	}
}

// refusedError gives a reason that came from another member its type back.
func refusedError(reason string) error {
	for _, known := range []error{ErrLogFull, ErrStorage} {
		if reason == known.Error() {
			return known
		}
	}
	return errors.New(reason)
}

// buildEntry is the entry of one forwarded proposal.
func (m *machine) buildEntry(it item) (*raftpb.Entry, error) {
	if !it.conf {
		return &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Data: it.data}, nil
	}
	var ch confChange
	if err := json.Unmarshal(it.data, &ch); err != nil {
		return nil, fmt.Errorf("change of membership: %w", err)
	}
	if err := m.conf.validate(ch); err != nil {
		return nil, err
	}
	data, err := proto.Marshal(m.conf.raftChange(ch, it.data))
	if err != nil {
		return nil, fmt.Errorf("change of membership: %w", err)
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Data: data}, nil
}
