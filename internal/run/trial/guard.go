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

var errEmulator = errors.New("the link emulator exited")

var errGovernor = errors.New("cannot enforce the flavor of a node")

// emulatorTimeout bounds how long the emulator may take to answer; it needs milliseconds unless the machine
// is overloaded.
const emulatorTimeout = 5 * time.Second

// guard cancels a trial when the emulator or a governor fails.
type guard struct {
	abort    context.CancelCauseFunc // cancels the trial, not the run
	watchers sync.WaitGroup
}

func newGuard(ctx context.Context) (work context.Context, g *guard) {
	work, abort := context.WithCancelCause(ctx)
	return work, &guard{abort: abort}
}

// watchEmulator aborts the trial when the emulator process exits.
func (g *guard) watchEmulator(work context.Context, l *lab.Lab) {
	g.watchers.Go(func() {
		select {
		case <-l.EmulatorDone():
			g.abort(errEmulator)
		case <-work.Done():
		}
	})
}

// runGovernor enforces the flavors until work ends, and aborts the trial if it cannot. governor may be nil.
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

// finish ends work, waits for the watchers, and returns err joined with its root cause.
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

// lostMachines returns an error for each of several machines that does not answer, the root cause of other
// errors. It is nil if all answer or the lab runs on one machine.
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
				errs[i] = fmt.Errorf("machine %s does not respond: %w", m.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// emulatorEnded reports whether the emulator has exited. Without it the nodes lose their devices, so a
// client or server may fail before the exit is noticed.
func emulatorEnded(l *lab.Lab) bool {
	if l == nil || l.EmulatorDone() == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), emulatorTimeout)
	defer cancel()
	if _, err := l.Lateness(ctx, false); err == nil {
		return false
	}
	select {
	case <-l.EmulatorDone():
		return true
	case <-ctx.Done():
		return false
	}
}

// newGovernor returns the governor of nodes whose quota varies, or nil, and the evidence that every node
// has its flavor. Setup does not consume credits: the workload starts with the credits of a new machine.
func newGovernor(l *lab.Lab, seed uint64) (*flavor.Governor, verdict.Piece[int]) {
	var g *flavor.Governor
	held, gaps := 0, l.UnenforcedLimits()
	for i, n := range l.Topology().Nodes {
		if n.Flavor == nil {
			continue
		}
		held++
		if !n.Flavor.Governed() {
			continue
		}
		h, err := l.Host(n.Name)
		node, ok := h.(flavor.GovernedNode)
		if err == nil && !ok {
			err = errors.ErrUnsupported
		}
		if err != nil {
			gaps = append(gaps, fmt.Sprintf("%s has no governor: %v", n.Name, err))
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
	return g, verdict.Present(held)
}
