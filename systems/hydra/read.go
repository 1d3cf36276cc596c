package hydra

import (
	"context"
	"errors"
	"time"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
)

const (
	freshenEvery   = 200 * time.Millisecond
	freshenTimeout = 2 * time.Second
)

// trackFreshness keeps the database's age known: with a read index applied, it holds every write acknowledged before.
func (n *Node) trackFreshness(ctx context.Context) {
	tick := time.NewTicker(freshenEvery)
	defer tick.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, freshenTimeout)
		_, _ = n.awaitLinearizable(bounded) // the age grows until a call succeeds
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awaitLinearizable waits until the database holds every write acknowledged before the call, and returns its read index.
func (n *Node) awaitLinearizable(ctx context.Context) (index uint64, err error) {
	asked, had := time.Now(), n.progress.index()
	index, err = n.log.ReadIndex(ctx)
	if err != nil {
		return 0, err
	}
	if n.store != nil && n.owned.Load() && had > index {
		return 0, n.rejectAhead(had, index)
	}
	if err := n.progress.wait(ctx, index); err != nil {
		return 0, err
	}
	for {
		known := n.freshAsOf.Load()
		if known != nil && !known.Before(asked) || n.freshAsOf.CompareAndSwap(known, &asked) {
			return index, nil
		}
	}
}

func (n *Node) staleness() time.Duration {
	if fresh := n.freshAsOf.Load(); fresh != nil {
		return maxAge(*fresh, time.Now())
	}
	return -1
}

// maxAge returns the longer of the monotonic and the wall-clock time since then. The monotonic clock
// covers a wall clock that is set back; the wall clock covers a suspended machine. A wall clock that
// is set forward only makes the age too large.
func maxAge(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

func (n *Node) checkUsable(ctx context.Context) error {
	if t := n.databaseProblem(); t != nil && errors.Is(t.err, errOwnershipUnknown) {
		select { // the first check of the database may be pending
		case <-n.checked:
		case <-ctx.Done():
		}
	}
	var why error
	switch t := n.databaseProblem(); {
	case n.store == nil:
		why = errWitness
	case t != nil:
		why = t.err
	case n.rebuilding.Load():
		why = errors.New("the database of " + n.Cloud + " is being rebuilt")
	default:
		return nil
	}
	if m, ok := n.findSubstitute(); ok {
		return &api.Elsewhere{Member: m.Name, API: m.API, Why: why}
	}
	code := api.CodeUnavailable
	if n.store == nil {
		code = api.CodeMisdirected
	}
	return api.Problemf(code, "%v", why)
}

func (n *Node) awaitFreshness(ctx context.Context, w api.Consistency) (api.Freshness, error) {
	if err := n.checkUsable(ctx); err != nil {
		return api.Freshness{}, err
	}
	if n.progress.index() == 0 {
		w.Read = api.Linearizable // an empty database has no age
	}
	var least uint64
	var err error
	age := n.staleness()
	if w.Read == api.Linearizable || w.Read == api.Bounded && (age < 0 || age > w.Staleness) {
		began := time.Now()
		if least, err = n.awaitLinearizable(ctx); err != nil {
			if elsewhere := n.checkUsable(ctx); elsewhere != nil {
				return api.Freshness{}, elsewhere
			}
			return api.Freshness{}, api.Problemf(api.CodeUnavailable, "no answer of the required freshness: %v", err)
		}
		age = time.Since(began)
	}
	f := api.Freshness{Cloud: n.Cloud, Applied: max(least, n.progress.index()), Staleness: age}
	if commit := n.log.Commit(); commit > f.Applied {
		f.Lag = commit - f.Applied
	}
	return f, nil
}

// readProblem converts a database error. If the server is silent, a member of another cloud answers.
func (n *Node) readProblem(table, key string, err error) error {
	if errors.Is(err, cloudsql.ErrSilent) || errors.Is(err, cloudsql.ErrLog) {
		if m, ok := n.findSubstitute(); ok {
			return &api.Elsewhere{Member: m.Name, API: m.API, Why: err}
		}
	}
	return storeProblem(table, key, err)
}

func storeProblem(table, key string, err error) error {
	switch {
	case errors.Is(err, cloudsql.ErrNotFound):
		return api.Problemf(api.CodeNotFound, "no row %q in table %s", key, table)
	case errors.Is(err, cloudsql.ErrUnknownTable):
		return &api.Problem{Code: api.CodeUnknownTable, Message: "no table " + table, Advice: "create it: PUT /v1/tables/" + table}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return api.Problemf(api.CodeUnavailable, "the database did not answer in time: %v", err)
	}
	return api.Problemf(api.CodeUnavailable, "the database: %v", err)
}

func (n *Node) ReadsInline(w api.Consistency) bool {
	return w.Read == api.Local && n.store != nil && n.store.IsLocal() && n.progress.index() > 0
}

// read reads when the database is fresh enough, and again if the database has gone back.
func (n *Node) read(ctx context.Context, table, key string, w api.Consistency, from func(least uint64) error) (api.Freshness, error) {
	for {
		f, err := n.awaitFreshness(ctx, w)
		if err != nil {
			return f, err
		}
		err = from(f.Applied)
		if n.handleStateLoss(err) && !errors.Is(err, cloudsql.ErrLog) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			err = n.readProblem(table, key, err)
		}
		return f, err
	}
}

func (n *Node) Get(ctx context.Context, table, key string, w api.Consistency) (api.Row, api.Freshness, error) {
	var row cloudsql.Row
	f, err := n.read(ctx, table, key, w, func(least uint64) (err error) {
		row, err = n.store.Get(ctx, table, key, least)
		return err
	})
	return api.Row{Key: key, Version: row.Version, Value: row.Value}, f, err
}

func (n *Node) Scan(ctx context.Context, table string, r api.Range, w api.Consistency) ([]api.Row, api.Freshness, error) {
	var rows []api.Row
	f, err := n.read(ctx, table, "", w, func(least uint64) (err error) {
		rows, err = scanPage(ctx, n.store, table, r, least)
		return err
	})
	return rows, f, err
}

var errFull = errors.New("the page is full")

func scanPage(ctx context.Context, s *cloudsql.Store, table string, r api.Range, least uint64) ([]api.Row, error) {
	var rows []api.Row
	size := 0
	err := s.Scan(ctx, table, cloudsql.Range{From: r.From, Until: r.Until, Behind: r.Behind, Limit: r.Limit, Least: least},
		func(row cloudsql.Row) error {
			rows = append(rows, api.Row{Key: row.Key, Version: row.Version, Value: row.Value})
			if size += len(row.Value); size >= api.MaxScanBytes {
				return errFull
			}
			return nil
		})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	return rows, nil
}

func (n *Node) Count(ctx context.Context, table string, w api.Consistency) (int64, api.Freshness, error) {
	var rows int64
	f, err := n.read(ctx, table, "", w, func(least uint64) (err error) {
		rows, err = n.store.Count(ctx, table, least)
		return err
	})
	return rows, f, err
}

func (n *Node) Tables(ctx context.Context, w api.Consistency) ([]string, api.Freshness, error) {
	var names []string
	f, err := n.read(ctx, "", "", w, func(least uint64) (err error) {
		names, err = n.store.Tables(least)
		return err
	})
	return names, f, err
}

func (n *Node) Snapshot(ctx context.Context, w writer) error {
	if n.store == nil {
		return api.Problemf(api.CodeMisdirected, "%v", errWitness)
	}
	_, err := n.store.Save(ctx, w)
	return err
}

func (n *Node) Progress(ctx context.Context, index uint64) uint64 {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.polls, cancel)()
	_ = n.progress.wait(ctx, index) // on a timeout the answer is the current index
	return n.progress.index()
}
