package hydra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/database/wire"
	"skerry/internal/hydra/api"
	"skerry/internal/hydra/client"
	"skerry/internal/load"
)

// defaultTable is YCSB's.
const defaultTable = "usertable"

// probeTimeout bounds the measurement of how near a member is.
const probeTimeout = 3 * time.Second

// arrange puts endpoints in the order in which a worker tries them: the nearest first, as
// the time to connect tells once for all workers; as they are listed; or each worker
// beginning with another one.
func (d *Hydra) arrange(ctx context.Context, s settings) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s.route {
	case routeListed:
		return s.endpoints
	case routeSpread:
		at := d.turn % len(s.endpoints)
		d.turn++
		return append(slices.Clone(s.endpoints[at:]), s.endpoints[:at]...)
	}
	key := strings.Join(s.endpoints, ",")
	if d.order[key] == nil {
		d.order[key] = nearest(ctx, s.endpoints)
	}
	return d.order[key]
}

func nearest(ctx context.Context, endpoints []string) []string {
	took := make(map[string]time.Duration, len(endpoints))
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, e := range endpoints {
		all.Go(func() {
			began := time.Now()
			conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "tcp", e)
			d := time.Since(began)
			if err != nil {
				d = time.Hour // the last
			} else {
				conn.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			took[e] = d
		})
	}
	all.Wait()
	order := slices.Clone(endpoints)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(took[a], took[b]) })
	return order
}

// worker is one worker's client.
type worker struct {
	client *client.Client
	decode decoder
	buffer []byte
}

var (
	_ load.Client  = (*worker)(nil)
	_ load.Retrier = (*worker)(nil)
	_ load.Counter = (*worker)(nil)
)

// openClient returns a client that has reached a member.
func openClient(ctx context.Context, s settings) (*worker, error) {
	w, err := newWorker(s, nil)
	if err != nil {
		return nil, err
	}
	if _, err := w.client.Tables(ctx, client.Read(api.Local)); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of hydra: %w", err), w.Close())
	}
	return w, nil
}

func newWorker(s settings, dial wire.DialFunc) (*worker, error) {
	c, err := client.New(client.Config{Endpoints: s.endpoints, Token: s.token, Timeout: s.timeout, Read: s.reads, Staleness: s.staleness, Ack: s.ack, Dial: dial})
	if err != nil {
		return nil, fmt.Errorf("opening a client of hydra: %w", err)
	}
	return &worker{client: c}, nil
}

func tableOf(name string) string { return cmp.Or(name, defaultTable) }

// outcome turns an error of Hydra's client into one of the load driver's.
func outcome(err error) error {
	if err == nil {
		return nil
	}
	var e *client.Error
	node, class := "", ""
	if errors.As(err, &e) {
		node, class = e.Endpoint, e.Code
	}
	switch {
	case errors.Is(err, client.ErrNotFound):
		return load.ErrNotFound
	case errors.Is(err, client.ErrInDoubt), errors.Is(err, client.ErrNotReached):
		return load.Unknown(cmp.Or(class, wire.Class(err)), node, err)
	}
	return load.Failed(cmp.Or(class, wire.DialClass(err)), node, err)
}

// Read implements load.Client.
func (w *worker) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	row, err := w.client.Get(ctx, tableOf(table), key)
	if err != nil {
		return dst, outcome(err)
	}
	return w.decode.fields(dst, row.Value, fields)
}

// Scan implements load.Client.
func (w *worker) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (seen int, err error) {
	page := client.Page{From: start, Limit: min(count, api.MaxScan)}
	var record []load.Field
	for {
		rows, err := w.client.Scan(ctx, tableOf(table), page)
		if err != nil {
			return seen, outcome(err)
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
		page = client.Page{After: rows.Next, Limit: min(count-seen, api.MaxScan)}
	}
}

// Insert implements load.Client. It writes the whole record, whether there is one or not.
func (w *worker) Insert(ctx context.Context, table, key string, values []load.Field) error {
	w.buffer = appendRecord(w.buffer[:0], values)
	_, err := w.client.Put(ctx, tableOf(table), key, w.buffer)
	return outcome(err)
}

// Update implements load.Client.
func (w *worker) Update(ctx context.Context, table, key string, values []load.Field) error {
	w.buffer = appendRecord(w.buffer[:0], values)
	_, err := w.client.Merge(ctx, tableOf(table), key, w.buffer)
	return outcome(err)
}

// Delete implements load.Client.
func (w *worker) Delete(ctx context.Context, table, key string) error {
	_, err := w.client.Delete(ctx, tableOf(table), key)
	return outcome(err)
}

// Count implements load.Counter.
func (w *worker) Count(ctx context.Context, table string) (int64, error) {
	n, err := w.client.Count(ctx, tableOf(table))
	return n, outcome(err)
}

// Retries implements load.Retrier.
func (w *worker) Retries() int64 { return w.client.Retries() }

// Close implements load.Client.
func (w *worker) Close() error { return w.client.Close() }
