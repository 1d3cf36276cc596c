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

// restartPause separates restarts of a daemon that cannot run.
const restartPause = 200 * time.Millisecond

// Supervisor starts daemons on nodes and restarts those that end.
type Supervisor struct {
	log      *slog.Logger
	ctx      context.Context // bounds restarts
	stop     context.CancelFunc
	restarts atomic.Int64
	watchers sync.WaitGroup

	mu      sync.Mutex
	daemons []*daemon
	last    string // log lines of the daemon that ended last
}

// renewGrace is the time for a daemon to end before a requested restart.
const renewGrace = 5 * time.Second

// lastLines is the number of log lines that are kept of an ended daemon.
const lastLines = 6

func NewSupervisor(log *slog.Logger) *Supervisor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Supervisor{log: log}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// daemon is a supervised process.
type daemon struct {
	host    host.Host
	command host.Command
	// renew receives requests for a restart; the answer is nil on success.
	renew chan chan<- error
}

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

// watch restarts a daemon when it ends, and on request.
func (k *Supervisor) watch(d *daemon, p host.Process) {
	for {
		select {
		case <-p.Done():
			k.mu.Lock()
			k.last = fmt.Sprintf("; %s on %s ended, the last lines of its log:\n%s", d.command.Name, d.host.Name(),
				strings.TrimSpace(p.Tail(lastLines)))
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

// restartEnded restarts an ended daemon as soon as possible; nil if it must not run any more.
func (k *Supervisor) restartEnded(d *daemon) host.Process {
	for {
		if linger.For(k.ctx, restartPause) != nil {
			return nil
		}
		p, err := d.host.Start(k.ctx, d.command)
		if err == nil {
			k.restarts.Add(1)
			k.log.Warn("routing daemon ended and was restarted", "node", d.host.Name(), "daemon", d.command.Name)
			return p
		}
		if errors.Is(err, host.ErrClosed) {
			return nil
		}
		k.log.Warn("restart of routing daemon failed", "node", d.host.Name(), "daemon", d.command.Name, "error", err)
	}
}

// Restart restarts all daemons, so that they read their configuration.
func (k *Supervisor) Restart(ctx context.Context) error {
	k.mu.Lock()
	daemons := slices.Clone(k.daemons)
	k.mu.Unlock()
	var g errgroup.Group
	for _, d := range daemons {
		g.Go(func() error {
			if err := k.requestRestart(ctx, d); err != nil {
				return fmt.Errorf("restart %s on %s: %w", d.command.Name, d.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// requestRestart requests a restart from the watching goroutine, which may be restarting the daemon already.
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

// LastLog returns the last log lines of the daemon that ended last, as a suffix for an error; "" if none ended.
func (k *Supervisor) LastLog() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// Restarts is the number of daemons that ended and were restarted.
func (k *Supervisor) Restarts() int { return int(k.restarts.Load()) }

// Close stops the supervision; the daemons end with their nodes.
func (k *Supervisor) Close() error {
	k.stop()
	k.watchers.Wait()
	return nil
}

// WaitUntil asks until the answer is nil, or ctx ends. It leaves four fifths of the time to
// those that it waits for: with many nodes a question costs as much as their answer.
func WaitUntil(ctx context.Context, ask func(context.Context) error) error {
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
