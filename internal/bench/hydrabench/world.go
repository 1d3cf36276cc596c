package hydrabench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/lab"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/system/hydra/api"
	"skerry/internal/system/hydra/deploy"
	"skerry/internal/system/hydra/hydraclient"
)

// Payload as the document had it, in bytes, and how many rows there are.
const (
	payload = 36
	keys    = 10_000
	// loadWorkers fill tables.
	loadWorkers = 8
	zoneName    = "hydra.test"
	// readyTimeout bounds waits for states to come.
	readyTimeout = 2 * time.Minute
	poll         = 20 * time.Millisecond
)

// world is a lab at one distance.
type world struct {
	Options
	lab    *lab.Lab
	layout deploy.Layout
	scale  float64
	scene  Scene
	notes  *[]string
}

func (w *world) note(format string, args ...any) {
	*w.notes = append(*w.notes, fmt.Sprintf(format, args...))
}

// near is the node that clients of the first cloud are on.
func (w *world) near() host.Host { return w.layout.Clouds[0].Edge }

// distances measures what the lab has in fact.
func (w *world) distances(ctx context.Context) error {
	first := w.layout.Clouds[0].Members[0]
	var err error
	if w.scene.RTT, err = roundTrip(ctx, first, w.layout.Clouds[1].Members[0]); err != nil {
		return err
	}
	if w.scene.Majority, err = roundTrip(ctx, first, w.layout.Witness); err != nil {
		return err
	}
	w.scene.Fsync, err = fsync(first.Dir())
	return err
}

// roundTrip is the median time of a connection's being refused, which is one round trip.
func roundTrip(ctx context.Context, from, to host.Host) (float64, error) {
	const closed = 9 // nothing listens there
	var took []time.Duration
	for range 15 {
		began := time.Now()
		conn, err := from.Dial(ctx, "tcp", deploy.Join(to, closed))
		if err == nil {
			return 0, errors.Join(fmt.Errorf("something listens at %s", deploy.Join(to, closed)), conn.Close())
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return ms(took[len(took)/2]), nil
}

// fsync is the median time until a small write is on the disk of a directory.
func fsync(dir string) (_ float64, err error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, fmt.Errorf("measuring the disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var took []time.Duration
	for range 51 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 256)); err != nil {
			return 0, fmt.Errorf("measuring the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measuring the disk: %w", err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return ms(took[len(took)/2]), nil
}

// deployed has f use a deployment of Hydra that is made for it, with the table in it.
func (w *world) deployed(ctx context.Context, o deploy.Options, f func(*deploy.Deployment, *hydraclient.Client) error) (err error) {
	if err := w.clear(ctx); err != nil {
		return err
	}
	o.Exe, o.Zone, o.Prefer, o.Insecure = w.Exe, zoneName, w.layout.Clouds[0].Name, true
	d, err := deploy.Launch(ctx, w.layout, o, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop(context.WithoutCancel(ctx))) }()
	c, err := hydraclient.New(w.reach(d))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.CreateTable(ctx, benchTable, hydraclient.Ack(api.Everywhere)); err != nil {
		return fmt.Errorf("making the table: %w", err)
	}
	return f(d, c)
}

func (w *world) reach(d *deploy.Deployment) hydraclient.Config {
	config := d.Reach()
	config.Timeout = opTimeout
	return config
}

// clear removes what an earlier deployment has left on the nodes.
func (w *world) clear(ctx context.Context) error {
	var errs []error
	for _, h := range w.lab.Hosts() {
		errs = append(errs, removeAll(ctx, h, "data"), removeAll(ctx, h, databaseFiles))
	}
	return errors.Join(errs...)
}

// databaseFiles is what a cloud's database consists of.
const databaseFiles = "hydra.db*"

// removeAll removes what of a node's directory a pattern matches.
func removeAll(ctx context.Context, h host.Host, pattern string) (err error) {
	for _, path := range files.Glob(ctx, h.Files(), filepath.Join(h.Dir(), pattern)) {
		err = errors.Join(err, h.Files().Remove(ctx, path))
	}
	return err
}

// endpoints are the members of the first cloud, the leader first where it is one of them.
func (w *world) endpoints(ctx context.Context, c *hydraclient.Client) ([]string, error) {
	leader, err := w.settled(ctx, c)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, h := range w.layout.Clouds[0].Members {
		if h.Name() == leader {
			all = append([]string{deploy.Join(h, deploy.PortAPI)}, all...)
		} else {
			all = append(all, deploy.Join(h, deploy.PortAPI))
		}
	}
	return all, nil
}

// settled waits until a member of the first cloud leads, and returns its name.
func (w *world) settled(ctx context.Context, c *hydraclient.Client) (leader string, err error) {
	err = await(ctx, "a member of the preferred cloud leads", func() (bool, error) {
		s, err := c.Status(ctx)
		leader = s.Leader
		return err == nil && strings.HasPrefix(leader, w.layout.Clouds[0].Name), err
	})
	return leader, err
}

// await waits until something is so.
func await(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		ok, err := so()
		if ok {
			return nil
		}
		if ended := linger.For(ctx, poll); ended != nil {
			return fmt.Errorf("waiting until %s: %w", what, errors.Join(ended, err))
		}
	}
}

// run has an agent do a job and keeps what it measured.
func (w *world) run(ctx context.Context, node host.Host, j job) error {
	before, err := w.used()
	if err != nil {
		return err
	}
	a, err := startAgent(ctx, node, w.Exe, j)
	if err != nil {
		return err
	}
	got, err := a.Wait(ctx)
	if err != nil {
		return fmt.Errorf("%s, %s with %d workers: %w", j.System, j.Op, j.Workers, err)
	}
	after, err := w.used()
	if err != nil || j.Op == opFill {
		return err
	}
	l := got.Load
	if l.OK > 0 {
		l.ServerCPU = float64((after-before).Microseconds())/float64(l.OK) - l.ClientCPU
	}
	w.scene.Loads = append(w.scene.Loads, l)
	w.Progress(fmt.Sprintf("%s %s, %d workers: %.0f/s, mean %.1f ms, %d failed, %.0f µs of a core each", j.System, j.Op, j.Workers, l.Rate, l.Mean, l.Failed, l.ClientCPU+l.ServerCPU))
	return nil
}

// used is what all processes on the lab's nodes have used of the processors.
func (w *world) used() (sum time.Duration, err error) {
	for _, h := range w.lab.Hosts() {
		u, err := h.Usage()
		if err != nil {
			return 0, fmt.Errorf("what %s has used: %w", h.Name(), err)
		}
		sum += u.CPU
	}
	return sum, nil
}
