package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/record"
)

// drift changes the links along their profiles while a trial measures.
type drift struct {
	links []experiment.LinkProfile
	every time.Duration
}

// newDrift returns nil if the experiment has no drift.
func newDrift(e experiment.Experiment, l *lab.Lab) (*drift, error) {
	if e.Drift == nil {
		return nil, nil
	}
	links, err := e.LinkProfiles(l.Topology())
	if err != nil {
		return nil, err
	}
	return &drift{links: links, every: e.Drift.Every.Duration()}, nil
}

// setDriftStart sets the links to the start of their drift, for the probes and the warm-up.
func setDriftStart(ctx context.Context, e experiment.Experiment, l *lab.Lab) error {
	d, err := newDrift(e, l)
	if d == nil || err != nil {
		return err
	}
	changes := make([]link.Change, len(d.links))
	for i, p := range d.links {
		ab, ba := p.BeforeMeasurement()
		changes[i] = link.Change{ID: p.ID, AB: &ab, BA: &ba}
	}
	if err := l.Set(ctx, changes); err != nil {
		return fmt.Errorf("set links to the start of their drift: %w", err)
	}
	return nil
}

// follow sets the links to their profiles from zero until ctx ends. Each step only touches links that
// change. It is confirmed concurrently with the next steps, unless an earlier confirmation is still
// running; observed receives the result.
func (d *drift) follow(ctx context.Context, net *event.LinkLayers, report reporter, zero time.Time, observed func(*record.Observed)) error {
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	set := make([]directions, len(d.links))
	var confirming errgroup.Group
	confirming.SetLimit(1)
	for {
		now := time.Since(zero)
		if changes := d.changes(now, set); len(changes) > 0 {
			update, err := net.SetBase(ctx, changes)
			if err != nil {
				if ctx.Err() != nil {
					return confirming.Wait()
				}
				return errors.Join(fmt.Errorf("apply link drift: %w", err), confirming.Wait())
			}
			step := record.Event{T: now.Seconds(), Kind: "drift", Message: fmt.Sprintf("%d links changed", len(changes))}
			begun := confirming.TryGo(func() error {
				step.Observed = net.Confirm(ctx, zero, update)
				observed(step.Observed)
				return report.writeLine(step)
			})
			if !begun {
				if err := report.writeLine(step); err != nil {
					return errors.Join(err, confirming.Wait())
				}
			}
		}
		select {
		case <-ctx.Done():
			return confirming.Wait()
		case <-tick.C:
		}
	}
}

type directions struct{ ab, ba link.Quality }

// changes returns the links whose profile at t differs from set, and updates set.
func (d *drift) changes(t time.Duration, set []directions) []link.Change {
	var out []link.Change
	for i, p := range d.links {
		next := directions{p.AB.At(t), p.BA.At(t)}
		if next != set[i] {
			set[i] = next
			out = append(out, link.Change{ID: p.ID, AB: &next.ab, BA: &next.ba})
		}
	}
	return out
}
