// Package hydra is a member of Hydra's data layer: the replicated log (package consensus), its cloud's SQL database
// (store) and the HTTP interface (api), tied together.
//
//	client ─► api ─► Write ─► log ──────────────► committed: acknowledged
//	                           │ Entries, many at a time
//	                           ▼
//	                        applier ─► store ───► applied: acknowledged
//	client ─► api ─► Get ─► ReadIndex, wait until applied ─► store
//
// Commit and apply form a pipeline: proposals never wait for the database, and the applier puts all entries that arrived
// during its last transaction into the next one. All members of a cloud share one database. One member applies; the
// others follow its index and take over when the index stands still.
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

// Log is the replicated log, implemented by consensus.Node and by a fake in tests.
type Log interface {
	Propose(ctx context.Context, data []byte) (index uint64, err error)
	Entries(ctx context.Context, from uint64, max int) ([]consensus.Entry, error)
	ReadIndex(ctx context.Context) (uint64, error)
	Commit() uint64
	Identity() consensus.Identity
	Applied(index uint64)
	Subscribe(id uint64) bool
	NotifySubscribers()
	Notified() <-chan struct{}
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

// Options configure a Node.
type Options struct {
	Cluster          string
	Name, Cloud, API string
	// Members have addresses in the configuration.
	Members []api.Member
	// Transport reaches other members' interfaces, with TLS if Secure. Token is the bearer token.
	Transport http.RoundTripper
	Secure    bool
	Token     string
	// Expires and Authorities describe the member's certificate; nil without TLS.
	Expires     func() time.Time
	Authorities func() []string
	// Dir holds the saved list of tables; "" disables it.
	Dir string
	// Version is the program's version, for /status.
	Version string
	Log     *slog.Logger

	pace pace
}

// pace is how often a follower reads the applied index, with waiters and without.
type pace struct{ busy, idle time.Duration }

// Node is a running member. It implements api.Backend.
type Node struct {
	Options
	log   Log
	store *cloudsql.Store // nil for a witness

	progress
	directory directory
	changes   tableChanges
	memory    tableCache
	stuck     stuckEntry
	remotes   remoteDatabases

	// database is locked while entries are applied or the database is replaced.
	database    sync.Mutex
	rebuilding  atomic.Bool
	problem     atomic.Pointer[databaseError] // reported by the applier
	syncProblem atomic.Pointer[databaseError] // reported by syncDatabase
	applying    atomic.Bool                   // this member is the applier
	checked     chan struct{}                 // closed after the first check of the database
	checkOnce   sync.Once
	owned       atomic.Bool                        // the database belongs to the log
	cancelApply atomic.Pointer[context.CancelFunc] // interrupts the applier

	freshAsOf atomic.Pointer[time.Time] // the database holds every write acknowledged before this time
	polls     context.Context           // bounds other members' progress requests
	unpoll    context.CancelFunc
	cancel    context.CancelFunc
	workers   sync.WaitGroup
}

var _ api.Backend = (*Node)(nil)

type databaseError struct{ err error }

// NewNode returns a stopped node; s is nil for a witness. The caller closes the log and the database after Stop.
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

// Start applies the log until Stop. If the database is not ready, the member votes and forwards requests until it is.
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

func (n *Node) checkDatabase(ctx context.Context) error {
	p, err := n.store.Progress(ctx)
	if err != nil {
		return err
	}
	n.problem.Store(&databaseError{err: errOwnershipUnknown})
	if p.Applied <= n.log.Commit() && n.acceptProgress(ctx, p) == nil { // the commit index alone decides
		n.markServing()
		n.chooseApplier(p.Holder)
	}
	return nil
}

// Release answers pending progress requests before the interface closes.
func (n *Node) Release() { n.unpoll() }

func (n *Node) Stop() {
	if n.cancel != nil {
		n.cancel()
	}
	n.unpoll()
	n.remotes.stop()
	n.workers.Wait()
}

func (n *Node) Save(ctx context.Context, w writer) (uint64, error) {
	if n.store == nil {
		return 0, errWitness
	}
	return n.store.Save(ctx, w)
}

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
	n.progress.setApplied(p.Applied) // may be past the snapshot
	return nil
}

var (
	errWitness = errors.New("a witness has no database")
	errAbsent  = errors.New("database not reached since the member started")
)

func (n *Node) databaseProblem() *databaseError {
	if t := n.problem.Load(); t != nil {
		return t
	}
	if n.store != nil && n.store.IsServer() {
		return n.syncProblem.Load()
	}
	return nil
}

func (n *Node) Ready(context.Context) error { return n.checkServing() }

func (n *Node) checkServing() error {
	switch {
	case n.store == nil:
		return errWitness
	case n.rebuilding.Load():
		return errors.New("database is being rebuilt")
	}
	if t := n.databaseProblem(); t != nil {
		return fmt.Errorf("the database: %w", t.err)
	}
	if _, ok := n.log.Leader(); !ok {
		return errors.New("no known leader")
	}
	if n.freshAsOf.Load() == nil {
		return errors.New("database has not caught up yet")
	}
	return nil
}

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
		p.Message = fmt.Sprintf("at check or write %d a row is larger than %d bytes, or the rows that it takes weigh more than %d",
			o.Failed, command.MaxValue, command.MaxWeight)
	}
	return p
}
