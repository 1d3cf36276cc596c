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

// goBack copies a cloud's database, and later restores the copy while members run. A table created meanwhile is missing
// from the copy.
func (w *world) goBack(c deploy.CloudNodes) fault {
	o := w.operators[c.Name]
	w.tables++
	table := fmt.Sprintf("late_%d", w.tables)
	return fault{
		name: "put the database of " + c.Name + " back to now, after", lost: c.Name,
		apply: func() error {
			w.awaitRecovery(c.Name) // so that the copy has contents
			if err := o.insist(w.t.Context(), func(db *sql.DB) error { return o.backUp(w.t.Context(), db) }); err != nil {
				return err
			}
			return w.makeTable(table)
		},
		mend: func() error { return w.putBack(c) },
	}
}

// makeTime bounds the creation of a table.
const makeTime = 2 * time.Second

// makeTable creates a table with a row in it, if a member can.
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

// mark writes a row that no copy has, and returns its key, or "" if it was not acknowledged.
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

// vigil reads an acknowledged row at each member of a cloud in a tight loop until it is stopped, and reports missing
// rows. An exchanged database is detected within milliseconds, and no earlier read may be answered from it.
func (w *world) vigil(c deploy.CloudNodes, key string) (end func()) {
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
		time.Sleep(vigilant) // a late detection would allow wrong reads meanwhile
		cancel()
		all.Wait()
	}
}

// vigilant is the duration of a vigil.
const vigilant = 300 * time.Millisecond

// putBack restores a copy when the other cloud has the entries that the log no longer has. Otherwise entries applied
// only here would be lost.
func (w *world) putBack(c deploy.CloudNodes) error {
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
	// Members may not have detected it yet: until then, the other cloud must have no fault.
	return o.insist(ctx, func(db *sql.DB) error {
		if err := applied(ctx, db, &has); err != nil || has >= had {
			return err
		}
		return fmt.Errorf("%w: the database of %s is at index %d, was at %d", errNotWell, c.Name, has, had)
	})
}

func applied(ctx context.Context, db *sql.DB, at *uint64) error {
	return db.QueryRowContext(ctx, "SELECT applied FROM hydra_meta WHERE id = 1").Scan(at)
}

// exchange replaces a cloud's database by one of another log for a while, and then restores it.
func (w *world) exchange(c deploy.CloudNodes) fault {
	o := w.operators[c.Name]
	return fault{
		name: "put a database of another log under " + c.Name, lost: c.Name,
		apply: func() error {
			w.awaitRecovery(c.Name)
			defer w.vigil(c, w.mark())()
			return o.insist(w.t.Context(), func(db *sql.DB) error { return o.replace(w.t.Context(), db) })
		},
		mend: func() error { return w.putBack(c) },
	}
}
