package hydrabench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/hydra/client"
	"skerry/internal/hydra/deploy"
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
// other cloud is written to.
func (w *world) rebuild(ctx context.Context) error {
	return w.deployed(ctx, deploy.Options{}, func(d *deploy.Deployment, c *client.Client) error {
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
		lost := w.layout.Clouds[1]
		of := func(s deploy.Service) bool { return s.Kind == deploy.Member && s.Cloud == lost.Name }
		if err := errors.Join(d.Kill(of), dropDatabase(lost)); err != nil {
			return err
		}
		a, err := startAgent(ctx, w.near(), w.Exe, job{System: systemHydra, Op: opWrite, Endpoints: at, Workers: serveWorkers, Keys: w.Rows, Payload: payload})
		if err != nil {
			return err
		}
		began := time.Now()
		if err := errors.Join(d.Revive(ctx, of), w.whole(ctx, lost)); err != nil {
			return errors.Join(err, a.kill())
		}
		took := time.Since(began)
		got, err := a.end(ctx)
		if err != nil {
			return err
		}
		w.scene.Rebuild = &Rebuild{Rows: w.Rows, Seconds: took.Seconds(), Writes: got.Load.Rate, Failed: got.Load.Failed}
		w.Progress(fmt.Sprintf("%d rows rebuilt in %.1f s", w.Rows, took.Seconds()))
		return nil
	})
}

// whole waits until a cloud's own members say that its database serves and has every row.
func (w *world) whole(ctx context.Context, cloud deploy.Cloud) error {
	c, err := client.New(client.Config{Endpoints: []string{deploy.Join(cloud.Members[0], deploy.PortAPI)}, Timeout: opTimeout, Dial: deploy.Dial(cloud.Members[0])})
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
		// Linearizable: a row that is missing is not excused by staleness.
		if rows, err = c.Count(ctx, benchTable); err == nil && rows != int64(w.Rows) {
			err = fmt.Errorf("the rebuilt database has %d rows of %d", rows, w.Rows)
		}
	}
	return errors.Join(err, c.Close())
}

// logSize watches the log on disk while more is written than its bound, and a cloud that
// does not apply holds it up.
func (w *world) logSize(ctx context.Context) error {
	return w.deployed(ctx, deploy.Options{MaxLog: w.MaxLog}, func(d *deploy.Deployment, c *client.Client) error {
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
			if err := pause(ctx, 10*poll); err != nil {
				return errors.Join(err, a.kill())
			}
			for _, h := range w.layout.Clouds[0].Members {
				one, err := client.New(client.Config{Endpoints: []string{deploy.Join(h, deploy.PortAPI)}, Dial: deploy.Dial(h)})
				if err != nil {
					return errors.Join(err, a.kill())
				}
				s, err := one.Status(ctx)
				if err = errors.Join(err, one.Close()); err != nil {
					return errors.Join(err, a.kill())
				}
				r.Largest = max(r.Largest, s.Log.Bytes)
				r.Wrote = max(r.Wrote, int64(s.Commit)*logPayload)
			}
		}
		got, err := a.end(ctx)
		if err != nil {
			return err
		}
		r.Wrote, r.Seconds = got.Load.OK*logPayload, got.Load.Seconds
		w.scene.Log = &r
		return nil
	})
}
