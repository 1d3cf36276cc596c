package hydra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

const defaultTable = "usertable"

// orderEndpoints returns the endpoints in trial order. For nearest, distances are measured once for all workers.
func (d *Hydra) orderEndpoints(ctx context.Context, s settings) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s.route {
	case routeListed, routeRotate:
		return s.endpoints
	case routeSpread:
		at := d.turn % len(s.endpoints)
		d.turn++
		return append(slices.Clone(s.endpoints[at:]), s.endpoints[:at]...)
	}
	key := strings.Join(s.endpoints, ",")
	if d.order[key] == nil {
		d.order[key] = database.SortByDistance(ctx, nil, s.endpoints)
	}
	return d.order[key]
}

type worker struct {
	// clients are used in turn. Each has another first member.
	clients []*hydraclient.Client
	release []func() error // release functions of clients
	turn    int
	decode  decoder
	buffer  []byte
	retries atomic.Int64
	count   hydraclient.Option // counts retries
}

func (w *worker) nextClient() *hydraclient.Client {
	c := w.clients[w.turn%len(w.clients)]
	w.turn++
	return c
}

var (
	_ load.Client  = (*worker)(nil)
	_ load.Retrier = (*worker)(nil)
	_ load.Counter = (*worker)(nil)
)

// openTimeout bounds the creation of a table on a cluster that Skerry did not start, which may never answer.
const openTimeout = 10 * time.Second

func openClient(ctx context.Context, s settings, clients *clientPool) (*worker, error) {
	w, err := newWorker(ctx, s, nil, clients)
	if err != nil {
		return nil, err
	}
	if s.table != "" {
		ctx, cancel := context.WithTimeout(ctx, openTimeout)
		defer cancel()
		err = w.nextClient().CreateTable(ctx, s.table, hydraclient.Ack(api.Applied), w.count)
	} else {
		_, err = w.nextClient().Tables(ctx, hydraclient.Read(api.Local), w.count)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of hydra: %w", err), w.Close())
	}
	return w, nil
}

func newWorker(ctx context.Context, s settings, dial database.DialFunc, clients *clientPool) (*worker, error) {
	w := &worker{}
	w.count = hydraclient.Retries(&w.retries)
	orders := 1
	if s.route == routeRotate {
		orders = len(s.endpoints)
	}
	for i := range orders {
		order := slices.Concat(s.endpoints[i:], s.endpoints[:i])
		c, release, err := clients.acquire(ctx, hydraclient.Config{
			Endpoints: order, Token: s.token, Timeout: s.timeout,
			Read: s.reads, Staleness: s.staleness, Ack: s.ack, Dial: dial,
		}, s.share)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening a client of hydra: %w", err), w.Close())
		}
		w.clients, w.release = append(w.clients, c), append(w.release, release)
	}
	return w, nil
}

func tableName(name string) string { return cmp.Or(name, defaultTable) }

func classifyError(err error) error {
	if err == nil {
		return nil
	}
	var e *hydraclient.Error
	node, class := "", ""
	if errors.As(err, &e) {
		node, class = e.Endpoint, e.Code
	}
	switch {
	case errors.Is(err, hydraclient.ErrNotFound):
		return load.ErrNotFound
	case errors.Is(err, hydraclient.ErrInDoubt), errors.Is(err, hydraclient.ErrNotReached):
		return load.Unknown(cmp.Or(class, database.ErrorClass(err)), node, err)
	}
	return load.Failed(cmp.Or(class, database.DialErrorClass(err)), node, err)
}

func (w *worker) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	row, err := w.nextClient().Get(ctx, tableName(table), key, w.count)
	if err != nil {
		return dst, classifyError(err)
	}
	return w.decode.fields(dst, row.Value, fields)
}

func (w *worker) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (seen int, err error) {
	page := hydraclient.Page{From: start, Limit: min(count, api.MaxScan)}
	var record []load.Field
	for {
		rows, err := w.nextClient().Scan(ctx, tableName(table), page, w.count)
		if err != nil {
			return seen, classifyError(err)
		}
		for _, row := range rows.Rows {
			if record, err = w.decode.fields(record[:0], row.Value, fields); err != nil {
				return seen, err
			}
			seen++
			if visit != nil {
				visit(row.Key, record)
			}
		}
		if rows.Next == "" || seen >= count {
			return seen, nil
		}
		page = hydraclient.Page{After: rows.Next, Limit: min(count-seen, api.MaxScan)}
	}
}

// Insert implements load.Client. It writes the whole record and replaces an existing one.
func (w *worker) Insert(ctx context.Context, table, key string, values []load.Field) error {
	w.buffer = appendRecord(w.buffer[:0], values)
	_, err := w.nextClient().Put(ctx, tableName(table), key, w.buffer, w.count)
	return classifyError(err)
}

func (w *worker) Update(ctx context.Context, table, key string, values []load.Field) error {
	w.buffer = appendRecord(w.buffer[:0], values)
	_, err := w.nextClient().Merge(ctx, tableName(table), key, w.buffer, w.count)
	return classifyError(err)
}

func (w *worker) Delete(ctx context.Context, table, key string) error {
	_, err := w.nextClient().Delete(ctx, tableName(table), key, w.count)
	return classifyError(err)
}

func (w *worker) Count(ctx context.Context, table string) (int64, error) {
	n, err := w.nextClient().Count(ctx, tableName(table), w.count)
	return n, classifyError(err)
}

func (w *worker) DropTable(ctx context.Context, table string) error {
	return classifyError(w.nextClient().DropTable(ctx, table, hydraclient.Ack(api.Applied), w.count))
}

func (w *worker) Retries() int64 { return w.retries.Load() }

func (w *worker) Close() error {
	var errs []error
	for _, release := range w.release {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// clientPool shares clients between workers. A shared client has one connection for frames to a member.
type clientPool struct {
	database.ClientPool[string, *hydraclient.Client]
}

// acquire returns a client for at most share workers and its release function. A share of 0 means one worker
// and HTTP.
func (p *clientPool) acquire(ctx context.Context, c hydraclient.Config, share int) (*hydraclient.Client, func() error, error) {
	if share == 0 || c.Dial != nil { // functions cannot be compared
		alone, err := hydraclient.New(c)
		if err != nil {
			return nil, nil, err
		}
		return alone, alone.Close, nil
	}
	c.Streams = 1
	key := fmt.Sprintf("%q", []any{c.Endpoints, c.Token, c.Timeout.String(), c.Read, c.Staleness.String(), c.Ack})
	return p.Acquire(ctx, key, database.ClientSource[*hydraclient.Client]{
		Open:       func(context.Context) (*hydraclient.Client, error) { return hydraclient.New(c) },
		Close:      (*hydraclient.Client).Close,
		MaxWorkers: share,
	})
}
