package overlay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/host"
)

// restartPause keeps a daemon that cannot run from being started in a loop.
const restartPause = 200 * time.Millisecond

// Keeper starts daemons on nodes and starts again those that end.
type Keeper struct {
	log      *slog.Logger
	ctx      context.Context // of restarts
	stop     context.CancelFunc
	restarts atomic.Int64
	watchers sync.WaitGroup

	mu   sync.Mutex
	last string // what the daemon said that ended last
}

// lastLines are how many lines of a daemon's log are kept when it ends.
const lastLines = 6

// NewKeeper returns a Keeper that keeps nothing.
func NewKeeper(log *slog.Logger) *Keeper {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{log: log}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Start starts a daemon on a node.
func (k *Keeper) Start(ctx context.Context, h host.Host, c host.Command) error {
	p, err := h.Start(ctx, c)
	if err != nil {
		return err
	}
	k.watchers.Go(func() { k.watch(h, c, p) })
	return nil
}

// watch starts a daemon again whenever it ends.
func (k *Keeper) watch(h host.Host, c host.Command, p host.Process) {
	for {
		select {
		case <-p.Done():
			k.mu.Lock()
			k.last = fmt.Sprintf("; %s on %s ended, the last lines of its log:\n%s", c.Name, h.Name(), strings.TrimSpace(p.Tail(lastLines)))
			k.mu.Unlock()
		case <-k.ctx.Done():
			return
		}
		for p = nil; p == nil; {
			select {
			case <-time.After(restartPause):
			case <-k.ctx.Done():
				return
			}
			var err error
			p, err = h.Start(k.ctx, c)
			if errors.Is(err, host.ErrClosed) {
				return
			}
			if err != nil {
				k.log.Warn("a routing daemon cannot be started again", "node", h.Name(), "daemon", c.Name, "error", err)
			}
		}
		k.restarts.Add(1)
		k.log.Warn("a routing daemon ended and was started again", "node", h.Name(), "daemon", c.Name)
	}
}

// LastWords are the last lines of the log of the daemon that ended last, introduced, for the
// end of an error; "" when none has.
func (k *Keeper) LastWords() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// Restarts is how often a daemon was started again.
func (k *Keeper) Restarts() int { return int(k.restarts.Load()) }

// Close leaves the daemons to themselves.
func (k *Keeper) Close() error {
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
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(max(least, share*time.Since(began))):
		}
	}
}
