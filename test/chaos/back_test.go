package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
)

// goBack copies a cloud's database, and puts the copy back over it later, under the members
// that run. A table made meanwhile is one of those that the copy does not have.
func (w *world) goBack(c deploy.Cloud) fault {
	o := w.operators[c.Name]
	w.tables++
	table := fmt.Sprintf("late_%d", w.tables)
	return fault{
		name: "put the database of " + c.Name + " back to now, after", lost: c.Name,
		apply: func() error {
			w.well(c.Name) // so that there is something to copy
			if err := o.insist(w.t.Context(), func(db *sql.DB) error { return o.keep(w.t.Context(), db) }); err != nil {
				return err
			}
			return w.makeTable(table)
		},
		mend: func() error { return w.putBack(c) },
	}
}

// makeTime bounds the making of a table.
const makeTime = 2 * time.Second

// makeTable makes a table with a row in it, if a member can.
func (w *world) makeTable(name string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), makeTime)
	defer cancel()
	data := w.data(w.balancers()...)
	defer data.Close()
	if err := data.CreateTable(ctx, name, hydraclient.Ack(api.Applied)); err != nil {
		return nil
	}
	_, _ = data.Put(ctx, name, "k", map[string]string{"in": name}) // acknowledged or not, the clouds agree in the end
	return nil
}

// mark writes a row that no copy has, and returns its key; "" where it is not
// acknowledged.
func (w *world) mark() (key string) {
	ctx, cancel := context.WithTimeout(w.t.Context(), makeTime)
	defer cancel()
	data := w.data(w.balancers()...)
	defer data.Close()
	key = fmt.Sprintf("mark-%d", w.marks.Add(1))
	if _, err := data.Put(ctx, "t", key, map[string]int{"v": 1}, hydraclient.Ack(api.Everywhere)); err != nil {
		return ""
	}
	return key
}

// vigil reads a row that was acknowledged at each member of a cloud, as fast as it can, until it is
// told to end, and tells of reads that miss it: a database that was exchanged under a member is
// noticed within milliseconds, and no read may be answered from it before.
func (w *world) vigil(c deploy.Cloud, key string) (end func()) {
	if key == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	for _, h := range c.Members {
		all.Go(func() {
			data := w.data(deploy.HostPort(h, deploy.PortAPI))
			defer data.Close()
			for ctx.Err() == nil {
				row, err := data.Get(ctx, "t", key)
				missed := errors.Is(err, hydraclient.ErrNotFound) || errors.Is(err, hydraclient.ErrUnknownTable)
				if missed || err == nil && string(row.Value) != `{"v":1}` {
					w.t.Errorf("%s, which was acknowledged, was read at %s as %s, %v", key, h.Name(), row.Value, err)
				}
			}
		})
	}
	return func() {
		time.Sleep(vigilant) // what is noticed late is read meanwhile
		cancel()
		all.Wait()
	}
}

// vigilant is how long a vigil goes on.
const vigilant = 300 * time.Millisecond

// putBack puts a copy back when the other cloud has what the log does not: else what was
// applied here alone would be nowhere.
func (w *world) putBack(c deploy.Cloud) error {
	for _, other := range w.layout.Clouds {
		if other.Name == c.Name {
			continue
		}
		if _, err := w.await(other.Name); err != nil {
			return err
		}
	}
	ctx, o := w.t.Context(), w.operators[c.Name]
	defer w.vigil(c, w.mark())()
	var had, has uint64
	err := o.insist(ctx, func(db *sql.DB) error {
		if err := applied(ctx, db, &had); err != nil {
			return err
		}
		return o.putBack(ctx, db)
	})
	if err != nil {
		return err
	}
	// Members may not have noticed yet: nothing happens to the other cloud before they have.
	return o.insist(ctx, func(db *sql.DB) error {
		if err := applied(ctx, db, &has); err != nil || has >= had {
			return err
		}
		return fmt.Errorf("%w: the database of %s is at %d, and was at %d", errNotWell, c.Name, has, had)
	})
}

func applied(ctx context.Context, db *sql.DB, at *uint64) error {
	return db.QueryRowContext(ctx, "SELECT applied FROM hydra_meta WHERE id = 1").Scan(at)
}

// exchange has a cloud's database be one of another log for a while, and then its own again,
// as it was before.
func (w *world) exchange(c deploy.Cloud) fault {
	o := w.operators[c.Name]
	return fault{
		name: "put a database of another log under " + c.Name, lost: c.Name,
		apply: func() error {
			w.well(c.Name)
			defer w.vigil(c, w.mark())()
			return o.insist(w.t.Context(), func(db *sql.DB) error { return o.replace(w.t.Context(), db) })
		},
		mend: func() error { return w.putBack(c) },
	}
}
