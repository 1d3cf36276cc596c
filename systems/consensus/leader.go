package consensus

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// leaderState is what the leader of a term knows about proposals in that term. A new term clears it. A member that
// restarts does not know what it appended before, so it neither accepts nor refuses proposals of its current term.
type leaderState struct {
	term    uint64 // 0: this member has not led in the current term
	windows map[uint64]*window
	trial   *pendingChange
}

type window struct {
	low      uint64
	appended map[uint64]bool
	refused  map[uint64]uint64 // attempts up to which a proposal is refused
}

// pendingChange is a change of membership that raft may have replaced by an empty entry.
type pendingChange struct {
	from  uint64
	epoch uint64
	it    item
}

func (l *leaderState) reset() { *l = leaderState{} }

func (l *leaderState) begin(term uint64) {
	l.term = term
	l.windows = map[uint64]*window{}
}

func (l *leaderState) window(epoch uint64) *window {
	w, ok := l.windows[epoch]
	if !ok {
		w = &window{appended: map[uint64]bool{}, refused: map[uint64]uint64{}}
		l.windows[epoch] = w
	}
	return w
}

func (w *window) forgetBelow(low uint64) {
	if low <= w.low {
		return
	}
	if low-w.low > uint64(len(w.appended)+len(w.refused)) {
		maps.DeleteFunc(w.appended, func(seq uint64, _ bool) bool { return seq < low })
		maps.DeleteFunc(w.refused, func(seq, _ uint64) bool { return seq < low })
	} else {
		for seq := w.low; seq < low; seq++ {
			delete(w.appended, seq)
			delete(w.refused, seq)
		}
	}
	w.low = low
}

func (m *machine) handleForward(from uint64, f *forward) {
	if r := m.appendForwarded(from, f); r != nil {
		m.out.messages = append(m.out.messages, message{to: from, refusal: r})
	}
}

// appendForwarded appends proposals sent to the leader of a term. Those in the refusal are certainly not appended in it.
func (m *machine) appendForwarded(from uint64, f *forward) *refusal {
	if f.term != m.term || m.leader.term != f.term {
		return nil
	}
	// A member resolves its own proposals itself, so that none of them arrives late or twice.
	local := from == m.cfg.id
	var w *window
	if !local {
		w = m.leader.window(f.epoch)
		w.forgetBelow(f.low)
	}
	r := &refusal{term: f.term, epoch: f.epoch}
	no := func(it item, reason string) {
		if w != nil {
			w.refused[it.seq] = it.attempt + 1
		}
		r.items = append(r.items, refused{it.seq, it.attempt, reason})
	}
	var entries []*raftpb.Entry
	var items []item
	for _, it := range f.items {
		if w != nil && (it.seq < w.low || w.appended[it.seq] || it.attempt < w.refused[it.seq]) {
			continue
		}
		if reason, closed := m.rejectsProposals(); closed {
			no(it, reason)
			continue
		}
		e, err := m.buildEntry(it)
		switch {
		case err != nil:
			no(it, err.Error())
			continue
		case it.conf && (m.leader.trial != nil || m.membership.changeIndex > m.published.index || m.role != raft.StateLeader):
			no(it, "")
			continue
		case it.conf:
			m.leader.trial = &pendingChange{from, f.epoch, it}
		}
		entries, items = append(entries, e), append(items, it)
		m.reserveSpace(int64(len(it.data)) + entryOverhead)
	}
	if len(entries) > 0 {
		err := m.raft.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: new(m.cfg.id), Entries: entries})
		for _, it := range items {
			switch {
			case err != nil:
				no(it, "")
			case w != nil:
				w.appended[it.seq] = true
			}
		}
		if err != nil {
			m.leader.trial = nil
		} else {
			m.placement.countProposals(from, len(items))
		}
	}
	if len(r.items) == 0 {
		return nil
	}
	return r
}

// rejectsProposals reports whether and why the leader rejects all proposals. An empty reason: another member may soon lead.
func (m *machine) rejectsProposals() (reason string, rejectsProposals bool) {
	switch {
	case m.space.err != nil && m.ticks < m.placement.waitUntil:
		return "", true
	case m.space.err != nil:
		return ErrStorage.Error(), true
	case m.space.full:
		return ErrLogFull.Error(), true
	}
	return "", false
}

func (m *machine) checkChangeProposal(entries []*raftpb.Entry) {
	t := m.leader.trial
	if t == nil {
		return
	}
	m.leader.trial = nil
	var asked confChange
	if err := json.Unmarshal(t.it.data, &asked); err != nil {
		return
	}
	for _, e := range entries {
		if e.GetType() == raftpb.EntryNormal {
			continue
		}
		cc := &raftpb.ConfChangeV2{}
		var ch confChange
		if proto.Unmarshal(e.GetData(), cc) == nil && json.Unmarshal(cc.GetContext(), &ch) == nil &&
			ch.Epoch == asked.Epoch && ch.Seq == asked.Seq {
			m.membership.changeIndex = e.GetIndex()
			return
		}
	}
	r := &refusal{term: m.term, epoch: t.epoch, items: []refused{{t.it.seq, t.it.attempt, ""}}}
	if t.from == m.cfg.id {
		m.handleRefusal(r)
		return
	}
	w := m.leader.window(t.epoch)
	delete(w.appended, t.it.seq)
	w.refused[t.it.seq] = t.it.attempt + 1
	m.out.messages = append(m.out.messages, message{to: t.from, refusal: r})
}

func (m *machine) pendingInOrder() iter.Seq[uint64] {
	return slices.Values(slices.Sorted(maps.Keys(m.proposals.pending)))
}
