package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
	"skerry/internal/topology/flavor"
)

// errEmulator is why a trial ends whose emulator has died.
var errEmulator = errors.New("the link emulator has ended")

// errGovernor is why a trial ends whose nodes cannot be held to their flavors.
var errGovernor = errors.New("the flavor of a node cannot be enforced")

// emulatorTimeout bounds how long the emulator may take to say that it runs; it takes
// milliseconds where the machine is not very busy.
const emulatorTimeout = 5 * time.Second

// guard ends the work of a trial when something fails that all of it stands on.
type guard struct {
	abort    context.CancelCauseFunc // of the trial's work, not of the run's
	watchers sync.WaitGroup
}

func newGuard(ctx context.Context) (work context.Context, g *guard) {
	work, abort := context.WithCancelCause(ctx)
	return work, &guard{abort: abort}
}

// watchEmulator ends the work when the process that moves the lab's packets ends.
func (g *guard) watchEmulator(work context.Context, l *lab.Lab) {
	g.watchers.Go(func() {
		select {
		case <-l.Ended():
			g.abort(errEmulator)
		case <-work.Done():
		}
	})
}

// runGovernor makes nodes obey their flavors until the work ends, and ends it when they cannot be
// made to; nil governs none.
func (g *guard) runGovernor(work context.Context, runGovernor *flavor.Governor) {
	if runGovernor == nil {
		return
	}
	g.watchers.Go(func() {
		if err := runGovernor.Run(work); err != nil && work.Err() == nil {
			g.abort(fmt.Errorf("%w: %w", errGovernor, err))
		}
	})
}

// finish ends the work and waits for those who watch it. The error is the one given, after what it
// follows from.
func (g *guard) finish(work context.Context, l *lab.Lab, err error) error {
	cause := context.Cause(work)
	if errors.Is(cause, errEmulator) || err != nil && emulatorEnded(l) {
		err = errors.Join(errEmulator, lostMachines(l), err)
	}
	if errors.Is(cause, errGovernor) {
		err = errors.Join(cause, err)
	}
	g.abort(nil)
	g.watchers.Wait()
	return err
}

// lostMachines tells which of several machines do not answer any more, or have no emulator: all else follows
// from that. It is nil where all answer, and where there is one machine alone.
func lostMachines(l *lab.Lab) error {
	if l == nil {
		return nil
	}
	members := l.Machines()
	if len(members) == 1 && members[0].Name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), emulatorTimeout)
	defer cancel()
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			if _, err := m.Lateness(ctx, false); err != nil {
				errs[i] = fmt.Errorf("%s is lost: %w", m.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// emulatorEnded asks the emulator whether it still runs. Without it the nodes lose their
// devices, of which a client or a server may tell before the end of the process is known.
func emulatorEnded(l *lab.Lab) bool {
	if l == nil || l.Ended() == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), emulatorTimeout)
	defer cancel()
	if _, err := l.Lateness(ctx, false); err == nil {
		return false
	}
	select {
	case <-l.Ended():
		return true
	case <-ctx.Done():
		return false
	}
}

// newGovernor makes a governor of the nodes whose quota changes with time, nil for none, and
// tells whether every node is held to the flavor that it has. Setting up costs no credits: what
// a machine has when it is launched, it has when the workload begins.
func newGovernor(l *lab.Lab, seed uint64) (*flavor.Governor, verdict.Piece[int]) {
	var g *flavor.Governor
	held, gaps := 0, l.Unheld()
	for i, n := range l.Topology().Nodes {
		if n.Flavor == nil {
			continue
		}
		held++
		if !n.Flavor.Governed() {
			continue
		}
		h, err := l.Host(n.Name)
		node, ok := h.(flavor.Machine)
		if err == nil && !ok {
			err = errors.ErrUnsupported
		}
		if err != nil {
			gaps = append(gaps, fmt.Sprintf("%s is not governed: %v", n.Name, err))
			continue
		}
		if g == nil {
			g = flavor.NewGovernor()
		}
		g.Add(node, *n.Flavor, seed+uint64(i)*0x9e3779b97f4a7c15)
	}
	switch {
	case len(gaps) > 0:
		return g, verdict.Missing[int](strings.Join(gaps, "; "))
	case held == 0:
		return g, verdict.NotDue[int]()
	}
	return g, verdict.Of(held)
}
