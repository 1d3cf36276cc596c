package hydra

import (
	"context"
	"errors"
	"sync"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
)

// Direct serves one SQL database without the log. Each write is one SQL transaction, durable when
// acknowledged. It is the baseline for measurements of Hydra.
type Direct struct {
	Cluster, Name, Cloud, Version string
	Store                         *cloudsql.Store

	mu   sync.Mutex // guards next
	next uint64
}

var _ api.Backend = (*Direct)(nil)

func (d *Direct) fresh(ctx context.Context) (api.Freshness, error) {
	return api.Freshness{Cloud: d.Cloud}, ctx.Err()
}

func (d *Direct) ReadsInline(api.Consistency) bool { return d.Store.IsLocal() }

func (d *Direct) Get(ctx context.Context, table, key string, _ api.Consistency) (api.Row, api.Freshness, error) {
	f, err := d.fresh(ctx)
	if err != nil {
		return api.Row{}, f, err
	}
	row, err := d.Store.Get(ctx, table, key, 0)
	if err != nil {
		return api.Row{}, f, storeProblem(table, key, err)
	}
	return api.Row{Key: key, Version: row.Version, Value: row.Value}, f, nil
}

func (d *Direct) Scan(ctx context.Context, table string, r api.Range, _ api.Consistency) ([]api.Row, api.Freshness, error) {
	rows, err := scanPage(ctx, d.Store, table, r, 0)
	if err != nil {
		err = storeProblem(table, "", err)
	}
	return rows, api.Freshness{Cloud: d.Cloud}, err
}

func (d *Direct) Count(ctx context.Context, table string, _ api.Consistency) (int64, api.Freshness, error) {
	n, err := d.Store.Count(ctx, table, 0)
	if err != nil {
		err = storeProblem(table, "", err)
	}
	return n, api.Freshness{Cloud: d.Cloud}, err
}

func (d *Direct) Tables(context.Context, api.Consistency) ([]string, api.Freshness, error) {
	names, err := d.Store.Tables(0)
	return names, api.Freshness{Cloud: d.Cloud}, err
}

func (d *Direct) Write(ctx context.Context, t *api.Transaction, _ api.Ack) (api.Written, error) {
	data := t.Append(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	for try := 0; ; try++ {
		if d.next == 0 {
			p, err := d.Store.Progress(ctx)
			if err != nil {
				return api.Written{}, api.Problemf(api.CodeUnavailable, "%v", err)
			}
			d.next = p.Applied + 1
		}
		applied, err := d.Store.Apply(ctx, d.Name, d.next-1, []cloudsql.Entry{{Index: d.next, Data: data}})
		if errors.Is(err, cloudsql.ErrMoved) && try == 0 {
			d.next = 0 // another process wrote
			continue
		}
		if err != nil {
			d.next = 0
			return api.Written{}, api.Problemf(api.CodeInDoubt, "%v", err)
		}
		d.next++
		outcome := applied.Results[0].Outcome
		return api.Written{Version: outcome.Version, Ack: api.Applied}, outcomeProblem(outcome)
	}
}

func (d *Direct) Status(ctx context.Context) api.Status {
	s := api.Status{Cluster: d.Cluster, Member: d.Name, Cloud: d.Cloud, Role: "direct", Leader: d.Name, Version: d.Version}
	p, err := d.Store.Progress(ctx)
	if err != nil {
		s.Problem = err.Error()
	}
	s.Applied, s.Commit = p.Applied, p.Applied
	s.Databases = []api.Database{{Cloud: d.Cloud, Kind: d.Store.Kind(), State: api.StateServing, Applied: p.Applied}}
	return s
}

func (d *Direct) Ready(ctx context.Context) error {
	_, err := d.Store.Progress(ctx)
	return err
}

func (d *Direct) Snapshot(ctx context.Context, w writer) error {
	_, err := d.Store.Save(ctx, w)
	return err
}

func (d *Direct) Progress(ctx context.Context, _ uint64) uint64 {
	p, err := d.Store.Progress(ctx)
	if err != nil {
		return 0
	}
	return p.Applied
}

var errAlone = api.Problemf(api.CodeBadRequest, "a direct SQL database has no members")

func (d *Direct) AddMember(_ context.Context, m api.Member) (api.Member, error) { return m, errAlone }

func (d *Direct) RemoveMember(context.Context, uint64) error { return errAlone }

func (d *Direct) Transfer(context.Context, string) error { return errAlone }
