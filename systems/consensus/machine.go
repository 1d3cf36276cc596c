package consensus

import (
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"skerry/systems/consensus/wal"
)

const electionTicks = 10

// machine is a member without goroutines, clock and I/O, except that it reads the log. Its inputs are method calls.
// Its outputs are collected in out until settle returns them. It is not safe for concurrent use.
type machine struct {
	cfg    machineConfig
	raft   *raft.RawNode
	log    *wal.Log
	logger *slog.Logger
	ticks  int
	now    time.Time

	term      uint64
	leaderID  uint64 // raft.None if unknown
	role      raft.StateType
	published position // last committed entry on this disk

	membership membership
	space      logSpace
	compaction compaction
	placement  placement
	offers     map[uint64]int // tick at which a member was sent a snapshot, by member
	proposals  proposalQueue
	leader     leaderState
	reads      readQueue
	candidacy  candidacy
	acks       ackFilter
	commits    commitNote

	out output
}

type membership struct {
	conf        conf   // as of the last change applied
	changeIndex uint64 // no change may be proposed before this index is applied
	removed     bool   // this member was removed
}

type position struct{ index, term uint64 }

type machineConfig struct {
	id              uint64
	epoch           uint64 // of this run of the member: no other has it
	name            string // for a log that has none
	members         []Member
	join            bool
	stateful        bool // there is a Snapshotter
	preferSite      string
	followProposals bool
	maxLog          int64
	maxAge          time.Duration
}

// output lists actions for the driver. Actions of one kind must keep their order. The order among kinds is free.
type output struct {
	messages  []message
	store     []request
	resolved  []resolution
	read      []readResult
	published bool
	changed   bool
}

// message is a message to another member. Exactly one field next to to is set.
type message struct {
	to       uint64
	raft     *raftpb.Message
	forward  *forward
	refusal  *refusal
	transfer uint64
	note     frameKind // frameSubscribe or frameNotify
	ping     *ping
	pong     int64 // sent of the ping that it answers
}

// newMachine continues from the log. Entry 1 of a new log stands for the first membership. Consumers never receive it.
func newMachine(cfg machineConfig, log *wal.Log, now time.Time, logger *slog.Logger) (*machine, error) {
	if log.Empty() && !cfg.join {
		first, err := firstConf(cfg.members)
		if err != nil {
			return nil, err
		}
		data, err := first.encode()
		if err != nil {
			return nil, err
		}
		if err := log.Reset(1, 1, data); err != nil {
			return nil, fmt.Errorf("beginning the log: %w", err)
		}
	}
	m := &machine{cfg: cfg, log: log, logger: logger, now: now, offers: map[uint64]int{}}
	if err := m.loadMembership(); err != nil {
		return nil, err
	}
	m.proposals.init()
	m.compaction.applied = map[uint64]uint64{}
	m.placement.proposals = map[uint64]int{}
	m.reads.init(cfg.epoch)
	m.candidacy.init(cfg.epoch)
	m.measureSpace()
	hs := log.HardState()
	if hs != nil {
		m.term = hs.GetTerm()
		m.commits.term, m.commits.vote = hs.GetTerm(), hs.GetVote()
	}
	rn, err := raft.NewRawNode(&raft.Config{
		ID:                        cfg.id,
		ElectionTick:              electionTicks,
		HeartbeatTick:             1,
		Storage:                   storage{m},
		Applied:                   m.published.index,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             512 << 10,
		MaxCommittedSizePerReady:  4 << 20,
		MaxUncommittedEntriesSize: 64 << 20,
		MaxInflightMsgs:           512,
		MaxInflightBytes:          64 << 20,
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Logger:                    raftLogger{logger},
	})
	if err != nil {
		return nil, fmt.Errorf("starting raft: %w", err)
	}
	m.raft = rn
	if len(m.membership.conf.State.Voters) == 1 && m.membership.conf.State.Voters[0] == cfg.id {
		if err := rn.Campaign(); err != nil {
			return nil, fmt.Errorf("starting raft: %w", err)
		}
	}
	return m, nil
}

type storage struct{ m *machine }

func (s storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hs := s.m.log.HardState()
	if hs != nil {
		// A membership in force was committed, even if the commit was not written.
		hs.Commit = new(max(hs.GetCommit(), s.m.published.index))
	}
	return hs, s.m.membership.conf.State.proto(), nil
}

func (s storage) Entries(lo, hi, most uint64) ([]*raftpb.Entry, error) {
	return s.m.log.Entries(lo, hi, most)
}
func (s storage) Term(i uint64) (uint64, error)       { return s.m.log.Term(i) }
func (s storage) LastIndex() (uint64, error)          { return s.m.log.LastIndex() }
func (s storage) FirstIndex() (uint64, error)         { return s.m.log.FirstIndex() }
func (s storage) Snapshot() (*raftpb.Snapshot, error) { return s.m.snapshot() }

func (m *machine) tick(now time.Time) {
	m.ticks++
	m.now = now
	m.raft.Tick()
	m.proposals.again = true
	m.flushCommit()
	m.campaignEarly()
	m.resendProposals()
	m.retryReads()
	m.maintain()
}

func (m *machine) step(msg *raftpb.Message) {
	if msg.GetType() == raftpb.MsgReadIndex && len(m.membership.conf.State.Voters) == 1 && !m.hasCommittedInTerm() {
		return // the learner repeats the request
	}
	if !m.admitEntries(msg) {
		return // the leader sends it again
	}
	if err := m.raft.Step(msg); err != nil {
		m.logger.Debug("message ignored", "type", msg.GetType(), "from", msg.GetFrom(), "err", err)
	}
	if msg.GetType() != raftpb.MsgStorageAppendResp {
		return
	}
	m.noteWritten(msg.GetIndex())
	if msg.GetSnapshot() != nil {
		m.installSnapshot(msg.GetSnapshot())
	}
}

func (m *machine) reportUnreachable(id uint64) {
	m.acks.reset()
	m.raft.ReportUnreachable(id)
	if m.role == raft.StateLeader && m.placement.target == id {
		m.abortTransfer()
	}
}

// setStorageError records whether the store can write: nil means that it can again. From the first error on, proposals
// wait until another member may lead, if there is one. Without the wait, a proposal would fail at once in this order of
// events: 1. raft checks its quorum, and considers all members inactive until they answer the next heartbeats; 2. a
// write fails; 3. no member is eligible to lead; 4. a proposal arrives.
func (m *machine) setStorageError(err error) {
	if err != nil && m.space.err == nil && len(m.membership.conf.State.Voters) > 1 {
		m.placement.waitUntil = max(m.placement.waitUntil, m.ticks+electionTicks)
	}
	if m.space.err = err; err == nil {
		return
	}
	m.logger.Error("the log cannot be written", "err", err)
	m.transferToAny()
}

func (m *machine) settle() output {
	for {
		m.flushProposals()
		m.flushReads()
		if !m.raft.HasReady() {
			break
		}
		m.handleReady(m.raft.Ready())
	}
	out := m.out
	m.out = output{}
	return out
}

func (m *machine) handleReady(rd raft.Ready) {
	if rd.HardState != nil && rd.GetTerm() != m.term {
		m.term = rd.GetTerm()
		m.leader.reset()
	}
	if rd.SoftState != nil {
		m.handleSoftState(rd)
	}
	m.checkChangeProposal(rd.Entries)
	for _, s := range rd.ReadStates {
		m.handleReadState(s)
	}
	for _, msg := range rd.Messages {
		switch msg.GetTo() {
		case raft.LocalAppendThread:
			m.acks.dropRepeated(msg, m.ticks)
			if m.commits.merge(msg) {
				m.out.store = append(m.out.store, request{write: msg})
			}
			m.noteWriting(msg.GetEntries())
			if snap := msg.GetSnapshot(); snap != nil {
				m.restoreMembership(snap)
			}
		case raft.LocalApplyThread:
			m.publishEntries(msg.GetEntries())
			for _, r := range msg.GetResponses() {
				m.step(r)
			}
		default:
			m.out.messages = append(m.out.messages, message{to: msg.GetTo(), raft: msg})
		}
	}
}

func (m *machine) handleSoftState(rd raft.Ready) {
	if rd.RaftState == raft.StateLeader && m.leader.term != m.term {
		m.leader.begin(m.term)
		if n := len(rd.Entries); n > 0 {
			m.membership.changeIndex = rd.Entries[n-1].GetIndex()
		}
		m.placement.reset(m.ticks)
		m.logger.Info("leads", "term", m.term)
	}
	m.role = rd.RaftState
	if rd.Lead != m.leaderID {
		m.leaderID = rd.Lead
		m.out.changed = true
		m.proposals.again = true
		m.restartReads(0)
	}
}

func (m *machine) publishEntries(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetTerm() > m.published.term {
			m.requeueOlderTerms(e.GetTerm())
		}
		m.published = position{e.GetIndex(), e.GetTerm()}
		switch {
		case e.GetType() != raftpb.EntryNormal:
			m.applyChange(e)
		case len(e.GetData()) > 0:
			m.resolveEntry(e.GetIndex(), e.GetData())
		}
	}
	m.out.published = true
}

func (m *machine) installSnapshot(snap *raftpb.Snapshot) {
	at := position{snap.GetMetadata().GetIndex(), snap.GetMetadata().GetTerm()}
	if at.index <= m.published.index {
		return
	}
	m.published = at
	m.failSkipped(at.term)
	m.holdProposals(0)
	m.out.published = true
}

func (m *machine) isLeader() bool { return m.role == raft.StateLeader }
