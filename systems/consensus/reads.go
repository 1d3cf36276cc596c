package consensus

import (
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
)

// maxReadBatches bounds the batches that wait for a round trip. New readers join the next batch.
const maxReadBatches = 16

type read struct {
	done     func(index uint64, err error)
	canceled func() error
}

type readResult struct {
	r     *read
	index uint64
	err   error
}

type readQueue struct {
	epoch   uint64
	seq     uint64
	waiting []*read
	batches map[string]*readBatch
}

type readBatch struct {
	reads []*read
	tick  int
}

func (r *readQueue) init(epoch uint64) {
	r.epoch = epoch
	r.batches = map[string]*readBatch{}
}

func (m *machine) readIndex(r *read) { m.reads.waiting = append(m.reads.waiting, r) }

func (m *machine) flushReads() {
	if m.leaderID == raft.None || len(m.reads.waiting) == 0 || len(m.reads.batches) >= maxReadBatches {
		return
	}
	if m.leaderID == m.cfg.id && !m.hasCommittedInTerm() {
		return
	}
	live := m.reads.waiting[:0]
	for _, r := range m.reads.waiting {
		if err := r.canceled(); err != nil {
			m.out.read = append(m.out.read, readResult{r: r, err: err})
			continue
		}
		live = append(live, r)
	}
	m.reads.waiting = nil
	if len(live) == 0 {
		return
	}
	m.reads.seq++
	id := binary.LittleEndian.AppendUint64(nil, m.reads.epoch)
	id = binary.LittleEndian.AppendUint64(id, m.reads.seq)
	m.reads.batches[string(id)] = &readBatch{live, m.ticks}
	m.raft.ReadIndex(id)
}

// hasCommittedInTerm reports whether an entry of the current term is committed. Before that, the commit index of a new
// leader may be lower than an index that an earlier leader acknowledged. The raft library waits itself, except in a
// leader that is the only voter.
func (m *machine) hasCommittedInTerm() bool { return m.published.term == m.term }

func (m *machine) handleReadState(s raft.ReadState) {
	b, ok := m.reads.batches[string(s.RequestCtx)]
	if !ok {
		return
	}
	delete(m.reads.batches, string(s.RequestCtx))
	for _, r := range b.reads {
		m.out.read = append(m.out.read, readResult{r: r, index: s.Index})
	}
}

// retryReads repeats batches that have waited for an election timeout, because the request or the response was lost.
func (m *machine) retryReads() { m.restartReads(electionTicks) }

// restartReads repeats batches that have waited for some ticks. A response to the old request is ignored.
func (m *machine) restartReads(ticks int) {
	for _, id := range slices.Sorted(maps.Keys(m.reads.batches)) {
		if b := m.reads.batches[id]; m.ticks-b.tick >= ticks {
			delete(m.reads.batches, id)
			m.reads.waiting = append(m.reads.waiting, b.reads...)
		}
	}
}
