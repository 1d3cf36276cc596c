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

// drift is how the links change while a trial measures.
type drift struct {
	links []experiment.LinkProfile
	every time.Duration
}

// newDrift returns an experiment's drift on a lab, nil when its links stay as they are.
func newDrift(e experiment.Experiment, l *lab.Lab) (*drift, error) {
	if e.Drift == nil {
		return nil, nil
	}
	links, err := e.Profiles(l.Topology())
	if err != nil {
		return nil, err
	}
	return &drift{links: links, every: e.Drift.Every.Duration()}, nil
}

// setDriftStart puts the links to where their drift begins, for the probes and the warm-up.
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
		return fmt.Errorf("set the links to the start of their drift: %w", err)
	}
	return nil
}

// follow sets the links to what their profiles say, all at one moment, from zero until
// ctx ends. Only a link that changes is touched. Each step is confirmed beside the next ones, unless the
// confirmation of an earlier one is under way; observed gets what was found.
func (d *drift) follow(ctx context.Context, net *event.LinkLayers, tell reporter, zero time.Time, observed func(*record.Observed)) error {
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
				return errors.Join(fmt.Errorf("letting the links drift: %w", err), confirming.Wait())
			}
			step := record.Event{T: now.Seconds(), Kind: "drift", Message: fmt.Sprintf("%d links changed", len(changes))}
			begun := confirming.TryGo(func() error {
				step.Observed = net.Confirm(ctx, zero, update)
				observed(step.Observed)
				return tell.writeLine(step)
			})
			if !begun {
				if err := tell.writeLine(step); err != nil {
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

// changes compares the profiles at t with what was set last, and remembers.
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
