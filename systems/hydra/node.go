// Package hydra is a member of Hydra's data layer: the replicated log (package
// consensus), its cloud's SQL database (store) and the HTTP interface (api), tied
// together.
//
//	client ─► api ─► Write ─► log ──────────────► committed: acknowledged
//	                           │ Entries, many at a time
//	                           ▼
//	                        applier ─► store ───► applied: acknowledged
//	client ─► api ─► Get ─► ReadIndex, wait until applied ─► store
//
// Commit and apply are a pipeline: no proposal waits for the database, and the applier
// takes as many entries into one SQL transaction as have come in while it was busy. All
// members of a cloud share one database. One of them applies; the others follow its
// index and take over when it stands still.
package hydra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
)

// Log is what a member asks of the replicated log: a consensus.Node.
type Log interface {
	Propose(ctx context.Context, data []byte) (index uint64, err error)
	Entries(ctx context.Context, from uint64, max int) ([]consensus.Entry, error)
	ReadIndex(ctx context.Context) (uint64, error)
	Commit() uint64
	Identity() consensus.Identity
	Applied(index uint64)
	Heed(id uint64) bool
	Tell()
	Told() <-chan struct{}
	Fetch(ctx context.Context, from uint64) (index uint64, err error)
	Leader() (consensus.Member, bool)
	Members() []consensus.Member
	Self() consensus.Member
	Status() consensus.Status
	Add(ctx context.Context, m consensus.Member) error
	Remove(ctx context.Context, id uint64) error
	Transfer(ctx context.Context, id uint64) error
	Done() <-chan struct{}
	Err() error
	Close() error
}

var _ Log = (*consensus.Node)(nil)

// Options are what a node needs beside its log and its database.
type Options struct {
	Cluster string
	// Name, Cloud and API (host:port, as others reach it) are this member's.
	Name, Cloud, API string
	// Members are the members of which the configuration tells where their interfaces are.
	Members []api.Member
	// Transport reaches other members' interfaces, under TLS when Secure; Token is sent
	// along.
	Transport http.RoundTripper
	Secure    bool
	Token     string
	// Expires tells until when the member's certificate is good, Authorities which it trusts; nil
	// without TLS.
	Expires     func() time.Time
	Authorities func() []string
	// Dir is where the member keeps which tables there are; "" for nowhere.
	Dir string
	// Version is the program's, for /status.
	Version string
	Log     *slog.Logger

	pace pace
}

// pace is how often a member that does not apply looks how far the database is: while somebody
// waits for it, and otherwise.
type pace struct{ busy, idle time.Duration }

// Node is a running member. It is the interface's Backend.
type Node struct {
	Options
	log   Log
	store *cloudsql.Store // nil: a witness

	progress
	directory directory
	changes   tableChanges
	memory    tableCache
	stuck     stuckEntry
	remotes   remoteDatabases

	// rebuilding is held while the database is replaced; who applies waits.
	database    sync.Mutex
	rebuilding  atomic.Bool
	problem     atomic.Pointer[databaseError] // of who applies
	syncProblem atomic.Pointer[databaseError] // of who looks whether the database is there
	applying    atomic.Bool                   // this member applies, as far as it knows
	checked     chan struct{}                 // closed when the database has been found to be the log's, or not
	checkOnce   sync.Once
	owned       atomic.Bool                        // the database is the log's
	cancelApply atomic.Pointer[context.CancelFunc] // ends what the applier waits for

	freshAsOf atomic.Pointer[time.Time] // the database holds all that was acknowledged before
	polls     context.Context           // of others' questions for progress
	unpoll    context.CancelFunc
	cancel    context.CancelFunc
	workers   sync.WaitGroup
}

var _ api.Backend = (*Node)(nil)

// databaseError is what keeps the database from serving.
type databaseError struct{ err error }

// NewNode makes a member of its parts; s is nil for a witness. Start has it work. The log
// and the database stay their owner's to close, after the node.
func NewNode(o Options, s *cloudsql.Store) *Node {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.pace == (pace{}) {
		o.pace = pace{followBusy, followIdle}
	}
	n := &Node{Options: o, store: s, checked: make(chan struct{})}
	n.polls, n.unpoll = context.WithCancel(context.Background())
	n.progress.init()
	n.directory.init(o.Members)
	n.memory.load(o.Dir)
	n.remotes.init(n)
	return n
}

// Start has the node apply the log, until Stop. A database that is not Ready yet is awaited
// meanwhile: the member votes, and has others answer what needs the database.
func (n *Node) Start(ctx context.Context, l Log) error {
	n.log = l
	ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if n.store != nil {
		if !n.store.Ready() {
			n.reportProblem(errAbsent)
		} else if err := n.checkDatabase(ctx); err != nil {
			n.cancel()
			return err
		}
		n.workers.Go(func() { n.applyLoop(ctx) })
		n.workers.Go(func() { n.syncDatabase(ctx) })
		n.workers.Go(func() { n.trackFreshness(ctx) })
	}
	n.workers.Go(func() { n.announce(ctx) })
	return nil
}

// checkDatabase looks at a database that is there. Whether it is the log's may have to wait.
func (n *Node) checkDatabase(ctx context.Context) error {
	p, err := n.store.Progress(ctx)
	if err != nil {
		return err
	}
	n.problem.Store(&databaseError{err: errOwnershipUnknown})
	if p.Applied <= n.log.Commit() && n.acceptProgress(ctx, p) == nil { // nobody has to be asked
		n.markServing()
		n.chooseApplier(p.Holder)
	}
	return nil
}

// Release answers who waits for this member's progress: the interface is about to end.
func (n *Node) Release() { n.unpoll() }

// Stop ends the node's work and waits for it.
func (n *Node) Stop() {
	if n.cancel != nil {
		n.cancel()
	}
	n.unpoll()
	n.remotes.stop()
	n.workers.Wait()
}

// Save implements consensus.Snapshotter.
func (n *Node) Save(ctx context.Context, w writer) (uint64, error) {
	if n.store == nil {
		return 0, errWitness
	}
	return n.store.Save(ctx, w)
}

// Load implements consensus.Snapshotter: the database serves what it holds until the
// snapshot is in.
func (n *Node) Load(ctx context.Context, index uint64, r reader) error {
	if n.store == nil {
		return errWitness
	}
	n.database.Lock()
	defer n.database.Unlock()
	n.rebuilding.Store(true)
	defer n.rebuilding.Store(false)
	began := time.Now()
	n.Log.Info("rebuilding the database from a snapshot", "index", index)
	got, err := n.store.Load(ctx, r)
	if err != nil {
		return err
	}
	n.Log.Info("the database was rebuilt", "index", got, "seconds", time.Since(began).Seconds())
	p, err := n.store.Progress(ctx)
	if err != nil {
		return err
	}
	n.progress.setApplied(p.Applied) // which may have been further already
	return nil
}

var (
	errWitness = errors.New("a witness has no database")
	errAbsent  = errors.New("the database has not been reached since the member's start")
)

// databaseProblem is what keeps the database from serving, nil when nothing does.
func (n *Node) databaseProblem() *databaseError {
	if t := n.problem.Load(); t != nil {
		return t
	}
	if n.store != nil && n.store.IsServer() {
		return n.syncProblem.Load()
	}
	return nil
}

// Ready implements api.Backend.
func (n *Node) Ready(context.Context) error { return n.checkServing() }

// checkServing returns nil when this member answers reads and writes.
func (n *Node) checkServing() error {
	switch {
	case n.store == nil:
		return errWitness
	case n.rebuilding.Load():
		return errors.New("the database is being rebuilt")
	}
	if t := n.databaseProblem(); t != nil {
		return fmt.Errorf("the database: %w", t.err)
	}
	if _, ok := n.log.Leader(); !ok {
		return errors.New("no leader is known")
	}
	if n.freshAsOf.Load() == nil {
		return errors.New("the database has not caught up yet")
	}
	return nil
}

// outcomeProblem turns an outcome that is none of success into a problem.
func outcomeProblem(o command.Outcome) error {
	failed := o.Failed
	p := &api.Problem{Code: o.Code, Failed: &failed}
	switch o.Code {
	case command.OK:
		return nil
	case command.CheckFailed:
		p.Message = fmt.Sprintf("check %d does not hold", o.Failed)
	case command.UnknownTable:
		p.Message, p.Advice = "there is no such table", "create it: PUT /v1/tables/NAME"
	case command.BadField:
		p.Message = fmt.Sprintf("write %d: a field to add to is no whole number of 64 bits, or would leave their range", o.Failed)
	case command.TooLarge:
		p.Message = fmt.Sprintf("at check or write %d a row is larger than %d bytes, or the rows that it takes weigh more than %d", o.Failed, command.MaxValue, command.MaxWeight)
	}
	return p
}
