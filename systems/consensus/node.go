package consensus

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"skerry/internal/base/advice"
	"skerry/systems/consensus/wal"
)

// cacheSize bounds the tail of the log in memory, in bytes. More entries would burden the garbage collector.
const cacheSize = 16 << 20

// Node is a running member.
type Node struct {
	cfg    Config
	logger *slog.Logger
	log    *wal.Log
	m      *machine // guarded by driving
	tr     *transport
	snap   snapshots
	moved  map[uint64]move // guarded by driving

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	done   chan struct{}

	inbox struct {
		sync.Mutex
		events []func()
		closed bool
	}
	subscribers subscriptions
	notified    chan struct{}
	driving     sync.Mutex    // guards the machine
	ticking     atomic.Bool   // a tick is in the inbox
	later       chan struct{} // holds a value if the loop must flush messages
	store       struct {
		sync.Mutex
		wake  chan struct{}
		queue []request
	}

	election  atomic.Int64
	published atomic.Uint64
	applied   atomic.Uint64

	mu      sync.Mutex
	view    view
	more    chan struct{} // closed when published grows
	changed chan struct{} // closed when view changes
	failed  error
}

type view struct {
	self     Member
	lead     uint64
	identity Identity
	term     uint64
	leads    bool
	members  []Member
}

// Open starts a member: it replays the log in cfg.Dir and joins the others. The context bounds the opening only.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fs, err := cfg.fs(cfg.Dir)
	if err != nil {
		return nil, advise(err)
	}
	log, err := wal.Open(fs, wal.Options{Cluster: cfg.Cluster, ID: cfg.Self.ID, Segment: segmentSize(cfg.MaxLog), Cache: cacheSize})
	if err != nil {
		return nil, advise(fmt.Errorf("opening the log in %s: %w", cfg.Dir, err))
	}
	n := &Node{
		cfg: cfg, logger: cfg.Log, log: log, done: make(chan struct{}), more: make(chan struct{}), changed: make(chan struct{}),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.later = make(chan struct{}, 1)
	n.subscribers.until, n.notified = map[uint64]time.Time{}, make(chan struct{}, 1)
	n.store.wake = make(chan struct{}, 1)
	n.election.Store(int64(cfg.Election))
	if cfg.Election == 0 {
		n.election.Store(int64(defaultElection))
	}
	n.snap.init(cfg)
	if err := n.start(); err != nil {
		n.cancel()
		log.Close()
		return nil, err
	}
	return n, nil
}

func (n *Node) start() error {
	n.driving.Lock() // events wait meanwhile
	defer n.driving.Unlock()
	var epoch [8]byte
	if _, err := cryptorand.Read(epoch[:]); err != nil {
		return fmt.Errorf("drawing an epoch: %w", err)
	}
	name, err := NewLogName()
	if err != nil {
		return err
	}
	m, err := n.newMachine(binary.LittleEndian.Uint64(epoch[:]), name)
	if err != nil {
		return err
	}
	n.m = m
	l := n.cfg.Listener
	if l == nil {
		if l, err = net.Listen("tcp", n.cfg.Self.Addr); err != nil {
			return advice.With(fmt.Errorf("listening for other members: %w", err),
				"use an address of this machine that no other process listens on")
		}
	}
	addr := n.cfg.Self.Addr
	if addr == "" {
		addr = l.Addr().String()
	}
	n.tr = &transport{
		cluster: n.cfg.Cluster, self: n.cfg.Self.ID, addr: addr, tls: n.cfg.TLS, secure: n.cfg.DialTLS, logger: n.logger,
		node: n,
	}
	n.tr.name.Store(m.membership.conf.Log) // before the first connection
	n.tr.start(l)
	n.findMovedMembers()
	n.tr.setMembers(n.cfg.Members, m.membership.conf.Removed)
	n.publishView(true)
	n.published.Store(m.published.index)
	n.wg.Go(n.writeLog)
	go n.loop() // Close waits for it
	return nil
}

// newMachine turns the library's panic about a log that lost entries into an error.
func (n *Node) newMachine(epoch uint64, name string) (m *machine, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = brokenError(p)
		}
	}()
	return newMachine(machineConfig{
		id: n.cfg.Self.ID, epoch: epoch, name: name, members: n.cfg.Members, join: n.cfg.Join,
		stateful: n.cfg.Snapshotter != nil, preferSite: n.cfg.PreferSite, followProposals: n.cfg.FollowProposals,
		maxLog: n.cfg.MaxLog, maxAge: n.cfg.MaxAge,
	}, n.log, time.Now(), n.logger)
}

func brokenError(p any) error {
	b, ok := p.(broken)
	if !ok {
		panic(p)
	}
	return advice.With(fmt.Errorf("raft's invariants are broken: %s", b.why),
		"do not run a member whose disk lost entries: remove it from the cluster "+
			"and add it again under a new identifier, with an empty directory")
}

func (c *Config) check() error {
	if c.Cluster == "" || c.Dir == "" {
		return fmt.Errorf("member: cluster and directory are required")
	}
	if err := checkMember(c.Self); err != nil {
		return err
	}
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == c.Self.ID })
	switch {
	case i < 0 && !c.Join:
		return fmt.Errorf("member %d is not among the members of the new cluster", c.Self.ID)
	case i >= 0 && c.Members[i].Role != c.Self.Role:
		return fmt.Errorf("member %d is a %s itself but a %s among the members", c.Self.ID, c.Self.Role, c.Members[i].Role)
	}
	if c.MaxLog == 0 {
		c.MaxLog = 1 << 30
	}
	if c.MaxLog < 1<<20 {
		return fmt.Errorf("a log of at most %d bytes is too small: 1 MiB is the least", c.MaxLog)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.fs == nil {
		c.fs = wal.Directory
	}
	return nil
}

func advise(err error) error {
	switch {
	case errors.Is(err, wal.ErrLocked):
		return advice.With(err, "stop the other process, or give this one a directory of its own")
	case errors.Is(err, wal.ErrCorrupt):
		return advice.With(err, "remove this member from the cluster and add it again under a new identifier, with an empty directory")
	case errors.Is(err, wal.ErrVersion):
		return advice.With(err, "run the version that wrote it, or a later one")
	case errors.Is(err, wal.ErrOwner):
		return advice.With(fmt.Errorf("%w: %w", ErrCluster, err), "give this member its own directory")
	}
	return err
}

// post queues an event and drives the machine. It returns false if the node is closed.
func (n *Node) post(do func()) bool {
	left := n.enqueue(do)
	n.drive()
	return left
}

// enqueue queues an event for the next driver. It returns false if the node is closed.
func (n *Node) enqueue(do func()) bool {
	n.inbox.Lock()
	defer n.inbox.Unlock()
	if n.inbox.closed {
		return false
	}
	n.inbox.events = append(n.inbox.events, do)
	return true
}

// call runs do with the machine and waits for it. It returns false if the node stopped before.
func (n *Node) call(do func()) bool {
	answered := make(chan struct{})
	if !n.post(func() { do(); close(answered) }) {
		return false
	}
	select {
	case <-answered:
		return true
	case <-n.done:
		return false
	}
}

// Close stops the node and waits for its goroutines. Waiting proposals fail.
func (n *Node) Close() error {
	n.cancel()
	<-n.done
	return nil
}

// Done is closed when the node has stopped: by Close, by removal, or because its log failed. Err returns the reason.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node stopped; nil while it runs and after Close.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed
}

func (n *Node) fail(err error) {
	n.mu.Lock()
	if n.failed == nil {
		n.failed = err
	}
	n.mu.Unlock()
	n.cancel()
}

func (n *Node) closed() error {
	if err := n.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// receive queues a message of another member. flushReceived handles all messages that arrived together.
func (n *Node) receive(from uint64, msg message) {
	if msg.raft.GetType() == raftpb.MsgSnap && n.deferSnapshot(msg.raft) {
		return
	}
	if msg.note != 0 {
		n.handleNote(from, msg.note)
		return
	}
	n.enqueue(func() {
		switch {
		case msg.raft != nil:
			n.m.step(msg.raft)
		case msg.forward != nil:
			n.m.handleForward(from, msg.forward)
		case msg.refusal != nil:
			n.m.handleRefusal(msg.refusal)
		case msg.transfer != 0:
			n.m.requestTransfer(msg.transfer)
		}
	})
}

func (n *Node) flushReceived() { n.drive() }

func (n *Node) peerLost(to uint64) { n.post(func() { n.m.reportUnreachable(to) }) }

// peerEnded handles a probable end of a member's process: its machine refuses connections, and it has none to this one.
func (n *Node) peerEnded(id uint64) { n.post(func() { n.m.suspectLeader(id) }) }

func (n *Node) handleExpelled() { n.fail(ErrRemoved) }

func (n *Node) handlePing(from uint64, p ping) {
	n.post(func() {
		n.m.setApplied(from, p.applied)
		n.m.setDropped(p.dropped)
		if n.cfg.Election == 0 && p.election != 0 && n.m.leaderID == from && n.m.term == p.term {
			n.election.Store(min(max(p.election, int64(minElection)), int64(maxElection)))
		}
	})
}

func (n *Node) heartbeat() ping {
	n.mu.Lock()
	v := n.view
	n.mu.Unlock()
	// A loaded state may be ahead of the log, which still needs the entries before it.
	p := ping{applied: min(n.applied.Load(), n.published.Load())}
	if first, err := n.log.FirstIndex(); err == nil {
		p.dropped = first - 1
	}
	if v.self.Role == Witness {
		p.applied = n.published.Load()
	}
	if v.leads {
		p.election, p.term = n.election.Load(), v.term
	}
	return p
}
