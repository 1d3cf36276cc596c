package hydrabench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/bench/agent"
	"skerry/internal/machine/host"
	"skerry/internal/system/hydra/deploy"
	"skerry/internal/system/hydra/hydraclient"
)

const (
	// serveWorkers write while a database is rebuilt.
	serveWorkers = 4
	// logWorkers write without an end, logPayload bytes each.
	logWorkers = 60
	logPayload = 1024
	// logRounds is how many times the bound is written.
	logRounds = 4
	logMost   = 5 * time.Minute
)

// rebuild takes a cloud's database away and measures until it is whole again, while the
// other cloud is written to and clients of its own go on.
func (w *world) rebuild(ctx context.Context) error {
	// So short a log that what filled the database has left it.
	short := min(max(int64(w.Rows)*rowInLog/2, 1<<20), 64<<20)
	return w.deployed(ctx, deploy.Options{MaxLog: short}, func(d *deploy.Deployment, c *hydraclient.Client) error {
		at, err := w.endpoints(ctx, c)
		if err != nil {
			return err
		}
		w.Progress(fmt.Sprintf("writing %d rows", w.Rows))
		if err := w.run(ctx, w.near(), job{System: systemHydra, Op: opFill, Endpoints: at, Workers: loadWorkers, Keys: w.Rows, Payload: payload}); err != nil {
			return err
		}
		if err := w.caughtUp(ctx, c); err != nil {
			return err
		}
		r := Rebuild{Rows: w.Rows}
		if r.LogFirst, err = w.compacted(ctx, c); err != nil {
			return err
		}
		lost := w.layout.Clouds[1]
		of := func(s deploy.Service) bool { return s.Kind == deploy.Member && s.Cloud == lost.Name }
		if err := errors.Join(d.Kill(of), removeAll(ctx, lost.Members[0], databaseFiles)); err != nil {
			return err
		}
		took, writes, reads, err := w.meanwhile(ctx, lost, at, func() error { return errors.Join(d.Revive(ctx, of), w.whole(ctx, lost)) })
		if err != nil {
			return err
		}
		r.Seconds, r.Writes, r.Reads = took.Seconds(), writes, reads
		w.scene.Rebuild = &r
		w.Progress(fmt.Sprintf("%d rows rebuilt in %.1f s", w.Rows, took.Seconds()))
		return nil
	})
}

// rowInLog is about how many bytes of the log a row of a fill takes.
const rowInLog = 64

// compacted waits until the log no longer begins at its beginning, and returns where it does.
func (w *world) compacted(ctx context.Context, c *hydraclient.Client) (first uint64, err error) {
	const whole = 2 // entry 1 is the membership
	err = await(ctx, "the log has been cut", func() (bool, error) {
		s, err := c.Status(ctx)
		first = s.Log.First
		return first > whole, err
	})
	return first, err
}

// meanwhile has clients of both clouds at work while something is done: those of the one that
// has lost its database go to the other when their own does not answer.
func (w *world) meanwhile(ctx context.Context, lost deploy.Cloud, leader []string, do func() error) (took time.Duration, writes, reads Load, err error) {
	begin := func(node host.Host, op string, at []string) (*agent.Agent[answer], error) {
		return startAgent(ctx, node, w.Exe, job{System: systemHydra, Op: op, Endpoints: at, Workers: serveWorkers, Keys: w.Rows, Payload: payload})
	}
	var own []string
	for _, h := range lost.Members {
		own = append(own, deploy.Join(h, deploy.PortAPI))
	}
	writer, err := begin(w.near(), opWrite, leader)
	if err != nil {
		return 0, writes, reads, err
	}
	reader, err := begin(lost.Edge, opRead, append(own, leader...))
	if err != nil {
		return 0, writes, reads, errors.Join(err, writer.Kill())
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, writes, reads, errors.Join(err, writer.Kill(), reader.Kill())
	}
	took = time.Since(began)
	wrote, err := writer.End(ctx)
	read, failed := reader.End(ctx)
	return took, wrote.Load, read.Load, errors.Join(err, failed)
}

// whole waits until a cloud's own members say that its database serves and has every row.
func (w *world) whole(ctx context.Context, cloud deploy.Cloud) error {
	c, err := hydraclient.New(hydraclient.Config{Endpoints: []string{deploy.Join(cloud.Members[0], deploy.PortAPI)}, Timeout: opTimeout, Dial: cloud.Members[0].Dial})
	if err != nil {
		return err
	}
	err = await(ctx, "the database is rebuilt", func() (bool, error) {
		if err := c.Ready(ctx); err != nil {
			return false, err
		}
		s, err := c.Status(ctx)
		if err != nil {
			return false, err
		}
		return s.Commit-min(s.Commit, s.Applied) <= lagAllowed, fmt.Errorf("applied %d of %d", s.Applied, s.Commit)
	})
	if err == nil {
		var rows int64
		var m hydraclient.Meta
		// Linearizable: a row that is missing is not excused by staleness.
		rows, err = c.Count(ctx, benchTable, hydraclient.WithMeta(&m))
		switch {
		case err != nil:
		case m.Forwarded != "" || m.Cloud != cloud.Name:
			err = fmt.Errorf("the database of %s, not that of %s, has counted its rows", m.Cloud, cloud.Name)
		case rows != int64(w.Rows):
			err = fmt.Errorf("the rebuilt database has %d rows of %d", rows, w.Rows)
		}
	}
	return errors.Join(err, c.Close())
}

// logSize watches the log on disk while more is written than its bound, and a cloud that
// does not apply holds it up.
func (w *world) logSize(ctx context.Context) error {
	return w.deployed(ctx, deploy.Options{MaxLog: w.MaxLog}, func(d *deploy.Deployment, c *hydraclient.Client) error {
		at, err := w.endpoints(ctx, c)
		if err != nil {
			return err
		}
		dead := w.layout.Clouds[1].Name
		if err := d.Kill(func(s deploy.Service) bool { return s.Kind == deploy.Member && s.Cloud == dead }); err != nil {
			return err
		}
		a, err := startAgent(ctx, w.near(), w.Exe, job{System: systemHydra, Op: opWrite, Endpoints: at, Workers: logWorkers, Keys: keys, Payload: logPayload})
		if err != nil {
			return err
		}
		r := Log{Bound: w.MaxLog}
		began := time.Now()
		for r.Wrote < logRounds*w.MaxLog && time.Since(began) < logMost {
			if err := linger.For(ctx, 10*poll); err != nil {
				return errors.Join(err, a.Kill())
			}
			for _, h := range w.layout.Clouds[0].Members {
				one, err := hydraclient.New(hydraclient.Config{Endpoints: []string{deploy.Join(h, deploy.PortAPI)}, Dial: h.Dial})
				if err != nil {
					return errors.Join(err, a.Kill())
				}
				s, err := one.Status(ctx)
				if err = errors.Join(err, one.Close()); err != nil {
					return errors.Join(err, a.Kill())
				}
				r.Largest = max(r.Largest, s.Log.Bytes)
				r.Wrote = max(r.Wrote, int64(s.Commit)*logPayload)
			}
		}
		got, err := a.End(ctx)
		if err != nil {
			return err
		}
		r.Wrote, r.Seconds = got.Load.OK*logPayload, got.Load.Seconds
		w.scene.Log = &r
		return nil
	})
}
