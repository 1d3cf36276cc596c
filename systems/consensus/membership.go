package consensus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"skerry/systems/consensus/wal"
)

type conf struct {
	// Index is the entry from which the membership is in force here.
	Index uint64 `json:"-"`
	// Through is the last change in it. It is after Index if the member began with a snapshot.
	Through uint64    `json:"through"`
	State   confState `json:"state"`
	Members []Member  `json:"members"`
	// Removed are identifiers that must not be used again.
	Removed []uint64 `json:"removed,omitempty"`
	// Log is the random name of the log, "" before its first entry.
	Log string `json:"log,omitempty"`
}

type confState struct {
	Voters         []uint64 `json:"voters"`
	Learners       []uint64 `json:"learners,omitempty"`
	VotersOutgoing []uint64 `json:"voters_outgoing,omitempty"`
	LearnersNext   []uint64 `json:"learners_next,omitempty"`
	AutoLeave      bool     `json:"auto_leave,omitempty"`
}

func (s confState) proto() *raftpb.ConfState {
	return &raftpb.ConfState{
		Voters: s.Voters, Learners: s.Learners, VotersOutgoing: s.VotersOutgoing, LearnersNext: s.LearnersNext,
		AutoLeave: new(s.AutoLeave),
	}
}

func confStateOf(s *raftpb.ConfState) confState {
	return confState{s.GetVoters(), s.GetLearners(), s.GetVotersOutgoing(), s.GetLearnersNext(), s.GetAutoLeave()}
}

type confChange struct {
	Epoch  uint64 `json:"epoch"`
	Seq    uint64 `json:"seq"`
	Op     string `json:"op"` // set, promote, remove or name
	Member Member `json:"member"`
	Log    string `json:"log,omitempty"` // of name
}

const (
	opSet     = "set"
	opPromote = "promote"
	opRemove  = "remove"
	opName    = "name"
)

func firstConf(members []Member) (conf, error) {
	c := conf{Index: 1, Through: 1, Members: slices.Clone(members)}
	slices.SortFunc(c.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for i, m := range c.Members {
		if err := checkMember(m); err != nil {
			return conf{}, err
		}
		if i > 0 && c.Members[i-1].ID == m.ID {
			return conf{}, fmt.Errorf("members: identifier %d occurs twice", m.ID)
		}
		if m.Role == Learner {
			c.State.Learners = append(c.State.Learners, m.ID)
		} else {
			c.State.Voters = append(c.State.Voters, m.ID)
		}
	}
	if len(c.State.Voters) == 0 {
		return conf{}, fmt.Errorf("members: a new cluster needs a voter")
	}
	return c, nil
}

func checkMember(m Member) error {
	if m.ID == 0 || m.ID >= 1<<63 {
		return fmt.Errorf("member %q: invalid identifier %d", m.Name, m.ID)
	}
	if m.Role != Voter && m.Role != Learner && m.Role != Witness {
		return fmt.Errorf("member %q: invalid role %q", m.Name, m.Role)
	}
	return nil
}

func (c conf) encode() (wal.Conf, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return wal.Conf{}, fmt.Errorf("encoding the membership: %w", err)
	}
	return wal.Conf{Index: c.Index, Data: data}, nil
}

func decodeConf(index uint64, data []byte) (conf, error) {
	c := conf{Index: index}
	if err := json.Unmarshal(data, &c); err != nil {
		return conf{}, fmt.Errorf("reading the membership as of entry %d: %w", index, err)
	}
	return c, nil
}

func (c conf) member(id uint64) (Member, bool) {
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return c.Members[i], true
}

func (c conf) votes(id uint64) bool { return slices.Contains(c.State.Voters, id) }

// loadMembership reads the membership from the log. Raft commits later entries again.
func (m *machine) loadMembership() error {
	if all := m.log.Confs(); len(all) > 0 {
		last := all[len(all)-1]
		c, err := decodeConf(last.Index, last.Data)
		if err != nil {
			return err
		}
		m.membership.conf = c
	}
	first, err := m.log.FirstIndex()
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	at := max(m.membership.conf.Index, first-1)
	term, err := m.log.Term(at)
	if err != nil {
		return fmt.Errorf("reading the term of entry %d: %w", at, err)
	}
	m.published = position{at, term}
	return nil
}

func (c conf) validate(ch confChange) error {
	_, known := c.member(ch.Member.ID)
	switch {
	case ch.Op == opSet:
		if slices.Contains(c.Removed, ch.Member.ID) {
			return fmt.Errorf("identifier %d belongs to a removed member, choose another", ch.Member.ID)
		}
		if c.votes(ch.Member.ID) && ch.Member.Role == Learner && len(c.State.Voters) == 1 {
			return fmt.Errorf("member %d is the only voter", ch.Member.ID)
		}
		return checkMember(ch.Member)
	case !known:
		return fmt.Errorf("%w as %d", ErrNotMember, ch.Member.ID)
	case ch.Op == opRemove && c.votes(ch.Member.ID) && len(c.State.Voters) == 1:
		return fmt.Errorf("member %d is the only voter", ch.Member.ID)
	}
	return nil
}

func (c conf) raftChange(ch confChange, context []byte) *raftpb.ConfChangeV2 {
	kind := raftpb.ConfChangeType_ConfChangeAddLearnerNode
	switch {
	case ch.Op == opRemove:
		kind = raftpb.ConfChangeType_ConfChangeRemoveNode
	case ch.Op == opPromote, c.votes(ch.Member.ID) && ch.Member.Role != Learner:
		kind = raftpb.ConfChangeType_ConfChangeAddNode
	}
	return &raftpb.ConfChangeV2{
		Changes: []*raftpb.ConfChangeSingle{{Type: kind.Enum(), NodeId: new(ch.Member.ID)}},
		Context: context,
	}
}

func (m *machine) applyChange(e *raftpb.Entry) {
	if e.GetIndex() <= m.membership.conf.Through {
		return
	}
	cc := &raftpb.ConfChangeV2{}
	var ch confChange
	err := proto.Unmarshal(e.GetData(), cc)
	if err == nil {
		err = json.Unmarshal(cc.GetContext(), &ch)
	}
	if err != nil {
		// Every member skips the same entry.
		m.logger.Error("change of membership is not readable", "index", e.GetIndex(), "err", err)
		return
	}
	next := m.membership.conf
	next.Index, next.Through, next.Members = e.GetIndex(), e.GetIndex(), slices.Clone(m.membership.conf.Members)
	at := slices.IndexFunc(next.Members, func(o Member) bool { return o.ID == ch.Member.ID })
	switch {
	case ch.Op == opRemove && at >= 0:
		next.Members = slices.Delete(next.Members, at, at+1)
		next.Removed = append(slices.Clone(next.Removed), ch.Member.ID)
	case ch.Op == opName && next.Log == "":
		next.Log = ch.Log
	case ch.Op == opSet && at >= 0:
		next.Members[at] = ch.Member
	case ch.Op == opSet:
		next.Members = append(next.Members, ch.Member)
		slices.SortFunc(next.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	}
	next.State = confStateOf(m.raft.ApplyConfChange(cc))
	m.setMembership(next)
	w, err := next.encode()
	if err == nil {
		m.out.store = append(m.out.store, request{conf: &w})
	}
	m.resolveProposal(ch.Epoch, ch.Seq, e.GetIndex())
}

func (m *machine) setMembership(c conf) {
	_, was := m.membership.conf.member(m.cfg.id)
	m.membership.conf = c
	if _, is := c.member(m.cfg.id); was && !is {
		m.membership.removed = true
	}
	m.out.changed = true
}

func (m *machine) restoreMembership(snap *raftpb.Snapshot) {
	c, err := decodeConf(snap.GetMetadata().GetIndex(), snap.GetData())
	if err != nil {
		m.logger.Error("membership of a snapshot is not readable", "err", err)
		return
	}
	m.setMembership(c)
}

// snapshot returns the snapshot that raft sends to members that need dropped entries: an index and a membership. The
// state travels separately. With a Snapshotter the index is the last one that the consumer applied, so that few entries
// after it are needed.
func (m *machine) snapshot() (*raftpb.Snapshot, error) {
	first, err := m.log.FirstIndex()
	if err != nil {
		return nil, err
	}
	at := first - 1
	if at > 1 && m.cfg.stateful {
		at = max(at, min(m.compaction.applied[m.cfg.id], m.published.index))
	}
	term, err := m.log.Term(at)
	if err != nil {
		return nil, err
	}
	c := m.membership.conf
	w, err := c.encode()
	if err != nil {
		return nil, err
	}
	return &raftpb.Snapshot{
		Data:     w.Data,
		Metadata: &raftpb.SnapshotMetadata{Index: new(at), Term: new(term), ConfState: c.State.proto()},
	}, nil
}
