package metabench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"skerry/internal/system/consensus"
	"skerry/internal/system/metadata"
	"skerry/internal/system/metadata/treeclient"
)

// Takeover is what became of writes when the leader of three replicas was killed.
type Takeover struct {
	// Seconds from each kill (SIGKILL) to the answer of the first write that was sent
	// after it.
	Seconds []float64 `json:"seconds"`
	// Acknowledged directories, and those of them that were not there in the end.
	Acknowledged int `json:"acknowledged"`
	Lost         int `json:"lost"`
}

const (
	takeovers = 5
	// takeoverWriters make directories through all replicas alike.
	takeoverWriters = 8
	// beforeKill is how many directories are made before a leader is killed.
	beforeKill = 500
	// takeoverPatience bounds a round.
	takeoverPatience = time.Minute
)

// replicas are a group of processes.
type replicas struct {
	b       *bench
	members []string // NAME=ADDR
	addrs   []string // that clients ask
	served  []*served
}

func (b *bench) replicas(ctx context.Context, n int) (*replicas, error) {
	g := &replicas{b: b, served: make([]*served, n)}
	for i := range n {
		peer, err := freeAddress()
		if err != nil {
			return nil, err
		}
		addr, err := freeAddress()
		if err != nil {
			return nil, err
		}
		g.members, g.addrs = append(g.members, fmt.Sprintf("m%d=%s", i+1, peer)), append(g.addrs, addr)
	}
	for i := range n {
		if err := g.start(ctx, i); err != nil {
			return nil, errors.Join(err, g.stop())
		}
	}
	return g, nil
}

func (g *replicas) start(ctx context.Context, i int) (err error) {
	name := fmt.Sprintf("m%d", i+1)
	args := []string{"--listen", g.addrs[i], "--name", name}
	for _, m := range g.members {
		args = append(args, "--member", m)
	}
	g.served[i], err = g.b.start(ctx, g.b.room("takeover-"+name), args...)
	return err
}

func (g *replicas) stop() (err error) {
	for _, s := range g.served {
		if s != nil {
			err = errors.Join(err, s.stop(syscall.SIGKILL))
		}
	}
	return err
}

// leader is the number of the one that leads.
func (g *replicas) leader(ctx context.Context) (int, error) {
	c := treeclient.New(strings.Join(g.addrs, ","))
	defer c.Close()
	for ctx.Err() == nil {
		s, err := c.Status(ctx)
		if err != nil {
			continue
		}
		for i := range g.members {
			if s.Group.Leader == consensus.MemberID(fmt.Sprintf("m%d", i+1)) {
				return i, nil
			}
		}
	}
	return 0, context.Cause(ctx)
}

// freeAddress is one that nobody listens at.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// takeover kills the leader of three replicas under load, again and again.
func (b *bench) takeover(ctx context.Context) (err error) {
	g, err := b.replicas(ctx, 3)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	var made []string
	for round := range takeovers {
		b.say("takeover %d of %d", round+1, takeovers)
		took, paths, err := g.lose(ctx, fmt.Sprintf("/%d", round))
		if err != nil {
			return err
		}
		b.r.Takeover.Seconds = append(b.r.Takeover.Seconds, took.Seconds())
		made = append(made, paths...)
	}
	b.r.Takeover.Acknowledged = len(made)
	b.r.Takeover.Lost, err = g.missing(ctx, made)
	return err
}

// lose kills the leader while directories are made below dir, and starts it again. It
// returns how long no write that was sent after the kill was answered, and what was
// acknowledged.
func (g *replicas) lose(ctx context.Context, dir string) (took time.Duration, made []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, takeoverPatience, errors.New("the replicas did not go on in time"))
	defer cancel()
	first := treeclient.New(strings.Join(g.addrs, ","))
	defer first.Close()
	for first.One(ctx, metadata.Command{Op: metadata.Mkdir, Path: dir, Parents: true}).Err != nil {
		if ctx.Err() != nil {
			return 0, nil, context.Cause(ctx)
		}
	}
	var killed atomic.Int64 // ns since began, 0 before
	var mu sync.Mutex
	var writers sync.WaitGroup
	began, half, over := time.Now(), make(chan struct{}), make(chan struct{})
	for w := range takeoverWriters {
		writers.Go(func() {
			c := treeclient.New(strings.Join(slices.Concat(g.addrs[w%3:], g.addrs[:w%3]), ","))
			defer c.Close()
			for i := 0; ctx.Err() == nil; i++ {
				select {
				case <-over:
					return
				default:
				}
				path, sent := fmt.Sprintf("%s/%d-%d", dir, w, i), time.Since(began)
				if c.One(ctx, metadata.Command{Op: metadata.Mkdir, Path: path}).Err != nil {
					continue
				}
				mu.Lock()
				if made = append(made, path); len(made) == beforeKill {
					close(half)
				}
				if at := time.Duration(killed.Load()); at > 0 && sent > at && took == 0 {
					took = time.Since(began) - at
					close(over)
				}
				mu.Unlock()
			}
		})
	}
	end := func(err error) (time.Duration, []string, error) {
		cancel()
		writers.Wait()
		return took, made, err
	}
	select {
	case <-half:
	case <-ctx.Done():
		return end(context.Cause(ctx))
	}
	lead, err := g.leader(ctx)
	if err != nil {
		return end(err)
	}
	at := time.Since(began)
	if err := g.served[lead].stop(syscall.SIGKILL); err != nil {
		return end(err)
	}
	g.served[lead] = nil
	killed.Store(int64(at))
	select {
	case <-over:
	case <-ctx.Done():
		return end(context.Cause(ctx))
	}
	writers.Wait()
	return end(g.start(context.WithoutCancel(ctx), lead))
}

// missing counts directories that are not there.
func (g *replicas) missing(ctx context.Context, paths []string) (n int, err error) {
	c := treeclient.New(strings.Join(g.addrs, ","))
	defer c.Close()
	for together := range slices.Chunk(paths, 500) {
		var stats []metadata.Command
		for _, p := range together {
			stats = append(stats, metadata.Command{Op: metadata.Stat, Path: p})
		}
		for _, r := range c.Do(ctx, stats) {
			switch {
			case errors.Is(r.Err, metadata.ErrNotFound):
				n++
			case r.Err != nil:
				return n, r.Err
			}
		}
	}
	return n, nil
}
