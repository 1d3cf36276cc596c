package overlay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/linger"
	"skerry/internal/machine/host"
)

// restartPause keeps a daemon that cannot run from being started in a loop.
const restartPause = 200 * time.Millisecond

// Supervisor starts daemons on nodes and starts again those that end.
type Supervisor struct {
	log      *slog.Logger
	ctx      context.Context // of restarts
	stop     context.CancelFunc
	restarts atomic.Int64
	watchers sync.WaitGroup

	mu      sync.Mutex
	daemons []*daemon
	last    string // what the daemon said that ended last
}

// renewGrace is how long a daemon may take to end that is to be started anew.
const renewGrace = 5 * time.Second

// lastLines are how many lines of a daemon's log are kept when it ends.
const lastLines = 6

// NewSupervisor returns a Keeper that keeps nothing.
func NewSupervisor(log *slog.Logger) *Supervisor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Supervisor{log: log}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// daemon is one that a Keeper looks after.
type daemon struct {
	host    host.Host
	command host.Command
	// renew is where it is asked to be started anew; the answer is nil when it has been.
	renew chan chan<- error
}

// Start starts a daemon on a node.
func (k *Supervisor) Start(ctx context.Context, h host.Host, c host.Command) error {
	p, err := h.Start(ctx, c)
	if err != nil {
		return err
	}
	d := &daemon{host: h, command: c, renew: make(chan chan<- error)}
	k.mu.Lock()
	k.daemons = append(k.daemons, d)
	k.mu.Unlock()
	k.watchers.Go(func() { k.watch(d, p) })
	return nil
}

// watch starts a daemon again whenever it ends, and when it is asked to.
func (k *Supervisor) watch(d *daemon, p host.Process) {
	for {
		select {
		case <-p.Done():
			k.mu.Lock()
			k.last = fmt.Sprintf("; %s on %s ended, the last lines of its log:\n%s", d.command.Name, d.host.Name(), strings.TrimSpace(p.Tail(lastLines)))
			k.mu.Unlock()
		case answer := <-d.renew:
			err := p.Stop(k.ctx, renewGrace)
			if err == nil {
				p, err = d.host.Start(k.ctx, d.command)
			}
			answer <- err
			if p != nil {
				continue
			}
		case <-k.ctx.Done():
			return
		}
		if p = k.restartEnded(d); p == nil {
			return
		}
	}
}

// restartEnded starts a daemon that has ended, as soon as that can be done; nil when it is not to
// run any more.
func (k *Supervisor) restartEnded(d *daemon) host.Process {
	for {
		if linger.For(k.ctx, restartPause) != nil {
			return nil
		}
		p, err := d.host.Start(k.ctx, d.command)
		if err == nil {
			k.restarts.Add(1)
			k.log.Warn("a routing daemon ended and was started again", "node", d.host.Name(), "daemon", d.command.Name)
			return p
		}
		if errors.Is(err, host.ErrClosed) {
			return nil
		}
		k.log.Warn("a routing daemon cannot be started again", "node", d.host.Name(), "daemon", d.command.Name, "error", err)
	}
}

// Restart ends all daemons and starts them, so that they read their configuration.
func (k *Supervisor) Restart(ctx context.Context) error {
	k.mu.Lock()
	daemons := slices.Clone(k.daemons)
	k.mu.Unlock()
	var g errgroup.Group
	for _, d := range daemons {
		g.Go(func() error {
			if err := k.requestRestart(ctx, d); err != nil {
				return fmt.Errorf("starting %s on %s anew: %w", d.command.Name, d.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// requestRestart has a daemon started anew by the one that watches it, which may be starting it already.
func (k *Supervisor) requestRestart(ctx context.Context, d *daemon) error {
	answer := make(chan error, 1)
	select {
	case d.renew <- answer:
		return <-answer
	case <-k.ctx.Done():
		return host.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// LastLog are the last lines of the log of the daemon that ended last, introduced, for the
// end of an error; "" when none has.
func (k *Supervisor) LastLog() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// Restarts is how often a daemon was started again.
func (k *Supervisor) Restarts() int { return int(k.restarts.Load()) }

// Close leaves the daemons to themselves.
func (k *Supervisor) Close() error {
	k.stop()
	k.watchers.Wait()
	return nil
}

// Await asks until the answer is nil, or ctx ends. It leaves four fifths of the time to
// those that it waits for: with many nodes a question costs as much as their answer.
func Await(ctx context.Context, ask func(context.Context) error) error {
	const least, share = 10 * time.Millisecond, 4
	for {
		began := time.Now()
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ended := linger.For(ctx, max(least, share*time.Since(began))); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}
