package consensus

import (
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"skerry/systems/consensus/wal"
)

// electionTicks is an election timeout in ticks, heartbeats being one tick apart.
const electionTicks = 10

// machine is a member without its surroundings: what comes in are calls, what goes out
// is collected in out for the caller to take. It knows no goroutines, no clock and no I/O
// except for reading the log. It is for one goroutine.
type machine struct {
	cfg       machineConfig
	rn        *raft.RawNode
	log       *wal.Log
	logger    *slog.Logger
	ticks     int
	now       time.Time
	term      uint64
	lead      uint64
	state     raft.StateType
	published position // the last committed entry on this disk
	storage   error    // why the log cannot be written
	full      bool     // no room in the log and nothing that may be dropped
	room      int64    // bytes that proposals may take until the next tick
	writing   []writing
	left      int             // tick since which entries of a leader have no room; 0: they have
	removed   bool            // from the cluster
	naming    map[uint64]bool // members that know names of logs

	conf      conf   // as of the last change applied
	confAfter uint64 // no change may be proposed before this index is applied

	props proposalQueue
	lding leaderState
	reads readQueue
	keep  keeping
	elect candidacy
	acks  ackFilter
	out   output

	commits commitNote
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

// output is what a machine wants done, in any order among kinds, but in order within one.
type output struct {
	messages []message
	store    []request
	resolved []resolution
	read     []readResult
	// published tells that more entries can be read.
	published bool
	// changed tells that the leader or the membership is another.
	changed bool
}

// message is one to another member; one field beside to is set.
type message struct {
	to       uint64
	raft     *raftpb.Message
	forward  *forward
	refusal  *refusal
	transfer uint64
	note     frameKind // frameHeed or frameTold
}

// newMachine continues from the log. A new log begins with entry 1, which nobody ever
// sees: it stands for the first membership.
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
	m := &machine{cfg: cfg, log: log, logger: logger, now: now, naming: map[uint64]bool{}}
	if err := m.loadMembership(); err != nil {
		return nil, err
	}
	m.props.init()
	m.keep.init()
	m.reads.init(cfg.epoch)
	m.elect.init(cfg.epoch)
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
	m.rn = rn
	if len(m.conf.State.Voters) == 1 && m.conf.State.Voters[0] == cfg.id {
		if err := rn.Campaign(); err != nil {
			return nil, fmt.Errorf("starting raft: %w", err)
		}
	}
	return m, nil
}

// storage is the log as raft sees it.
type storage struct{ m *machine }

func (s storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hs := s.m.log.HardState()
	if hs != nil {
		// A change of membership in force was committed, whether its commit was noted or not.
		hs.Commit = new(max(hs.GetCommit(), s.m.published.index))
	}
	return hs, s.m.conf.State.proto(), nil
}

func (s storage) Entries(lo, hi, most uint64) ([]*raftpb.Entry, error) {
	return s.m.log.Entries(lo, hi, most)
}
func (s storage) Term(i uint64) (uint64, error)       { return s.m.log.Term(i) }
func (s storage) LastIndex() (uint64, error)          { return s.m.log.LastIndex() }
func (s storage) FirstIndex() (uint64, error)         { return s.m.log.FirstIndex() }
func (s storage) Snapshot() (*raftpb.Snapshot, error) { return s.m.snapshot() }

// tick lets a tenth of an election timeout pass.
func (m *machine) tick(now time.Time) {
	m.ticks++
	m.now = now
	m.rn.Tick()
	m.props.again = true
	m.flushCommit()
	m.campaignEarly()
	m.resendProposals()
	m.retryReads()
	m.maintain()
}

// step takes a message of raft from another member, or an answer of the store.
func (m *machine) step(msg *raftpb.Message) {
	if msg.GetType() == raftpb.MsgReadIndex && len(m.conf.State.Voters) == 1 && !m.hasCommittedInTerm() {
		return // the learner asks again
	}
	if !m.admitEntries(msg) {
		return // the leader sends it again
	}
	if err := m.rn.Step(msg); err != nil {
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

// reportUnreachable tells that messages to a member were lost.
func (m *machine) reportUnreachable(id uint64) {
	m.acks.reset()
	m.rn.ReportUnreachable(id)
	if m.state == raft.StateLeader && m.keep.to == id {
		m.abortTransfer()
	}
}

// setStorageError tells how the store fares: nil when it writes again. From the first error on proposals wait for another member to
// lead, where there is one: to be refused at once, 1. raft checks its quorum, and forgets until the next heartbeats' answers
// that any member is there; 2. a write fails; 3. nobody is found who could lead; 4. a proposal arrives.
func (m *machine) setStorageError(err error) {
	if err != nil && m.storage == nil && len(m.conf.State.Voters) > 1 {
		m.keep.waits = max(m.keep.waits, m.ticks+electionTicks)
	}
	if m.storage = err; err == nil {
		return
	}
	m.logger.Error("the log cannot be written", "err", err)
	m.transferToAny()
}

// settle brings everything that came in to its consequences and returns what is to be done.
func (m *machine) settle() output {
	for {
		m.flushProposals()
		m.flushReads()
		if !m.rn.HasReady() {
			break
		}
		m.handleReady(m.rn.Ready())
	}
	out := m.out
	m.out = output{}
	return out
}

func (m *machine) handleReady(rd raft.Ready) {
	if rd.HardState != nil && rd.GetTerm() != m.term {
		m.term = rd.GetTerm()
		m.lding.reset()
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
	if rd.RaftState == raft.StateLeader && m.lding.term != m.term {
		m.lding.begin(m.term)
		if n := len(rd.Entries); n > 0 {
			m.confAfter = rd.Entries[n-1].GetIndex()
		}
		m.keep.leads(m.ticks)
		m.logger.Info("leads", "term", m.term)
	}
	m.state = rd.RaftState
	if rd.Lead != m.lead {
		m.lead = rd.Lead
		m.out.changed = true
		m.props.again = true
		m.restartReads(0)
	}
}

// publishEntries takes committed entries that are on this disk, in their order.
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

// installSnapshot moves on to a snapshot that is in force and on disk.
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

// isLeader tells whether this member leads, as far as it knows.
func (m *machine) isLeader() bool { return m.state == raft.StateLeader }
