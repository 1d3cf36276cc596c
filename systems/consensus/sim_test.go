package consensus

import (
	"bytes"
	"container/heap"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"skerry/systems/consensus/wal"
	"skerry/test/waltest"
)

// sim runs raft machines and their stores in virtual time. Every message, write, tick and fault is an event
// whose time is drawn from the seed.
type sim struct {
	rng    *mathrand.Rand
	opt    simOptions
	now    time.Duration
	order  int
	events eventHeap
	nodes  []*simNode
	cut    map[[2]uint64]bool
	calm   bool // no more faults: the schedule is ending

	committed map[uint64]simEntry // by index, as first committed at any member
	where     map[string]uint64   // index by value
	leaders   map[uint64]uint64   // by term
	proposals []*simProposal
	acked     uint64 // the highest acknowledged index
	trace     interface {
		Write([]byte) (int, error)
		Sum64() uint64
	}
	logger *slog.Logger
	stats  simStats
	// entries counts the messages that carry entries, acknowledge them or announce their commit.
	entries int
}

type simOptions struct {
	members  int
	duration time.Duration
	loss     float64
	delay    time.Duration // upper bound of a message's delay, except for rare stragglers
	lies     bool          // disks report syncs that they did not do
	compact  bool          // the log is compacted as far as possible
	full     bool          // disks are full at times
	change   bool          // members are added and removed
	prefer   string        // preferred site of the leader
	bound    int64         // of the log, in bytes; 0: effectively unlimited
}

type simStats struct{ acked, notDone, inDoubt, reads, snapshots, crashes, leaders, changes int }

type simEntry struct {
	term uint64
	data []byte
}

type simProposal struct {
	value string
	state string // empty while open, ok, not done, in doubt
	index uint64
}

type simNode struct {
	id      uint64
	fs      *waltest.FS
	rng     *mathrand.Rand
	life    int // incremented at each start; events of an earlier life are ignored
	m       *machine
	log     *wal.Log
	queue   []request
	busy    bool
	applied uint64 // the consumer's, durable
	paused  time.Duration
	join    bool
	gone    bool
	lost    bool // its consumer has lost its state and applies nothing
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

// violation is the panic value of a failed check.
type violation struct{ what string }

func (s *sim) fail(format string, args ...any) { panic(violation{fmt.Sprintf(format, args...)}) }

// simulate runs one schedule and returns the violation found, if any, and a fingerprint of the run.
func simulate(seed uint64, opt simOptions, logger *slog.Logger) (found string, digest uint64, stats simStats) {
	return play(seed, opt, logger, (*sim).run)
}

// play is simulate with the caller's schedule.
func play(seed uint64, opt simOptions, logger *slog.Logger, schedule func(*sim)) (found string, digest uint64, stats simStats) {
	var key [32]byte
	key[0], key[1], key[2] = byte(seed), byte(seed>>8), byte(seed>>16)
	// The raft library draws its election timeouts from here.
	before := rand.Reader
	rand.Reader = mathrand.NewChaCha8(key)
	defer func() { rand.Reader = before }()
	s := &sim{
		rng: mathrand.New(mathrand.NewPCG(seed, 99)), opt: opt, cut: map[[2]uint64]bool{},
		committed: map[uint64]simEntry{}, where: map[string]uint64{}, leaders: map[uint64]uint64{},
		trace: fnv.New64a(), logger: logger,
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case violation:
			found = fmt.Sprintf("at %v: %s", s.now, p.what)
		case broken:
			found = fmt.Sprintf("at %v: raft: %s", s.now, p.why)
		default:
			panic(p)
		}
		digest, stats = s.trace.Sum64(), s.stats
		stats.leaders = len(s.leaders)
	}()
	schedule(s)
	return
}

func (s *sim) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{s.now + d, s.order, do})
}

// at runs do for a node after d unless the node has crashed or is paused by then.
func (s *sim) at(n *simNode, d time.Duration, do func()) {
	life := n.life
	var run func()
	run = func() {
		if n.life != life || n.m == nil {
			return
		}
		if n.paused > s.now {
			s.after(n.paused-s.now, run)
			return
		}
		do()
	}
	s.after(d, run)
}

func (s *sim) until(end time.Duration) {
	for len(s.events) > 0 && s.events[0].at <= end {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	s.now = end
}

func (s *sim) run() {
	var members []Member
	for i := range s.opt.members {
		role := Voter
		if i == s.opt.members-1 && i > 1 && s.rng.IntN(3) == 0 {
			role = Witness
		}
		members = append(members, Member{ID: uint64(i + 1), Site: fmt.Sprint(i % 2), Role: role})
	}
	for _, m := range members {
		s.boot(s.newNode(m.ID, false), members)
	}
	if s.opt.lies {
		s.after(300*time.Millisecond, func() {
			for _, n := range s.nodes {
				n.fs.Lies = true
			}
		})
	}
	s.after(s.ms(100), s.client)
	s.after(s.ms(200), s.fault)
	s.until(s.opt.duration)
	s.finish(members)
}

func (s *sim) newNode(id uint64, join bool) *simNode {
	rng := mathrand.New(mathrand.NewPCG(s.rng.Uint64(), id))
	n := &simNode{id: id, fs: waltest.New(rng), rng: rng, join: join}
	s.nodes = append(s.nodes, n)
	return n
}

func (s *sim) ms(most int) time.Duration {
	return time.Duration(s.rng.Int64N(int64(most)*int64(time.Millisecond) + 1))
}

// boot starts a node from the contents of its disk.
func (s *sim) boot(n *simNode, members []Member) {
	maxLog, segment := int64(1<<30), int64(3000)
	switch {
	case s.opt.compact:
		maxLog = 1000
	case s.opt.bound != 0:
		maxLog, segment = s.opt.bound, segmentSize(s.opt.bound)
	}
	log, err := wal.Open(n.fs, wal.Options{Cluster: "sim", ID: n.id, Segment: segment, Cache: 2000, Now: func() time.Time { return time.Unix(0, int64(s.now)) }})
	if err != nil {
		s.fail("member %d cannot open its log: %v", n.id, err)
	}
	cfg := machineConfig{id: n.id, epoch: n.rng.Uint64(), name: fmt.Sprint("log", n.rng.Uint64()), members: members, join: n.join, stateful: true, maxLog: maxLog, preferSite: s.opt.prefer}
	if s.opt.compact {
		cfg.preferSite = "1"
	}
	m, err := newMachine(cfg, log, time.Time{}, s.logger.With("node", n.id))
	if err != nil {
		s.fail("member %d cannot start: %v", n.id, err)
	}
	n.m, n.log, n.queue, n.busy = m, log, nil, false
	m.setApplied(n.id, n.applied)
	s.settle(n)
	var tick func()
	tick = func() {
		n.m.tick(time.Unix(0, int64(s.now)))
		for _, o := range s.nodes {
			if o != n && o.m != nil && !s.isCut(o.id, n.id) {
				n.m.setApplied(o.id, o.applied)
				if first, err := o.log.FirstIndex(); err == nil {
					n.m.setDropped(first - 1)
				}
			}
		}
		if s.opt.compact {
			n.m.space.full, n.m.space.free = false, 1<<30
		}
		s.consume(n)
		s.settle(n)
		s.at(n, 9*time.Millisecond+s.ms(2), tick)
	}
	s.at(n, s.ms(10), tick)
}

func (s *sim) isCut(a, b uint64) bool { return s.cut[[2]uint64{a, b}] }

// settle carries out the pending output of a machine.
func (s *sim) settle(n *simNode) {
	out := n.m.settle()
	if n.m.role == raft.StateLeader {
		if was, ok := s.leaders[n.m.term]; ok && was != n.id {
			s.fail("members %d and %d both lead in term %d", was, n.id, n.m.term)
		}
		s.leaders[n.m.term] = n.id
	}
	for _, msg := range out.messages {
		s.send(n, msg)
	}
	for _, r := range out.resolved {
		r.p.done(r.index, r.err)
	}
	for _, r := range out.read {
		r.r.done(r.index, r.err)
	}
	n.queue = append(n.queue, out.store...)
	s.work(n)
	if n.m.membership.removed {
		s.stop(n)
		n.gone = true
	}
}

// consume applies some of the committed entries and compares them with those of other members.
func (s *sim) consume(n *simNode) {
	if self, ok := n.m.membership.conf.member(n.id); !ok || self.Role == Witness {
		n.applied = n.m.published.index
		n.m.setApplied(n.id, n.applied)
		return
	}
	if n.lost || s.rng.IntN(4) == 0 {
		return
	}
	first, _ := n.log.FirstIndex()
	if n.applied+1 < first {
		if first == 2 {
			n.applied = 1
		} else if !s.fetch(n, first-1) {
			return
		}
	}
	for n.applied < n.m.published.index {
		entries, err := n.log.Entries(n.applied+1, n.m.published.index+1, 1000)
		if errors.Is(err, raft.ErrUnavailable) && n.m.published.index < n.applied {
			return
		}
		if err != nil {
			s.fail("member %d reads entry %d: %v", n.id, n.applied+1, err)
		}
		for _, e := range entries {
			s.recordCommitted(n, e)
			n.applied = e.GetIndex()
		}
	}
	n.m.setApplied(n.id, n.applied)
}

func (s *sim) recordCommitted(n *simNode, e *raftpb.Entry) {
	was, ok := s.committed[e.GetIndex()]
	if ok {
		if was.term != e.GetTerm() || !bytes.Equal(was.data, e.GetData()) {
			s.fail("entry %d is %q of term %d for member %d, it was %q of term %d", e.GetIndex(), e.GetData(), e.GetTerm(), n.id, was.data, was.term)
		}
		return
	}
	s.committed[e.GetIndex()] = simEntry{e.GetTerm(), e.GetData()}
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) < idSize {
		return
	}
	value := string(e.GetData()[idSize:])
	if at, ok := s.where[value]; ok {
		s.fail("%q is in the log twice, at %d and %d", value, at, e.GetIndex())
	}
	s.where[value] = e.GetIndex()
}
