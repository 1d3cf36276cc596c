package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/base/linger"
	"skerry/internal/database/failure"
	"skerry/internal/load"
)

const (
	// refreshPause is the least time between two questions for the slots: while
	// slots move, every move causes redirects at every worker.
	refreshPause = 100 * time.Millisecond
	// refreshTimeout bounds one question.
	refreshTimeout = 5 * time.Second
)

// router knows which node serves which slot. All workers with the same properties
// share one; go-redis' cluster client asks for the slots, through whichever nodes
// answer. A redirect corrects single slots meanwhile.
type router struct {
	settings
	client goredis.UniversalClient
	// dial connects, where that is not from where this process is; hello is sent on
	// every new connection.
	dial  failure.DialFunc
	hello []string
	// alone stays with node 0 whatever that says of the others.
	alone bool
	// owner is a node's number by slot, -1 while unknown.
	owner [slots]atomic.Int32
	// moved is which question for the slots was the latest when a redirect last told of one.
	moved    [slots]atomic.Uint32
	question atomic.Uint32
	// nodes are the addresses by number. It only grows: a number stays valid.
	nodes atomic.Pointer[[]string]
	mu    sync.Mutex // held while nodes grows

	stale  chan struct{} // asks for a refresh
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// newRouter asks where the slots are.
func newRouter(ctx context.Context, s settings) (*router, error) {
	r := &router{settings: s, stale: make(chan struct{}, 1)}
	r.nodes.Store(new([]string))
	for i := range r.owner {
		r.owner[i].Store(-1)
	}
	seeds := strings.Split(s.seeds, ",")
	err := r.connect(ctx, seeds)
	if err != nil {
		err = fmt.Errorf("asking %s for the cluster's nodes: %w", s.seeds, err)
		if r.client != nil {
			err = errors.Join(err, r.client.Close())
		}
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	r.done.Go(func() { r.run(run) })
	return r, nil
}

func (r *router) connect(ctx context.Context, seeds []string) error {
	if r.cluster != "false" {
		r.client = goredis.NewClusterClient(clusterOptions(seeds, r.settings))
		err := r.refresh(ctx)
		if r.cluster == "true" || !noCluster(err) {
			return err
		}
		if err := r.client.Close(); err != nil {
			return err
		}
	}
	r.client = goredis.NewClient(nodeOptions(seeds[0], r.settings))
	if err := r.client.Ping(ctx).Err(); err != nil {
		return err
	}
	n := r.number(seeds[0])
	for i := range r.owner {
		r.owner[i].Store(n)
	}
	r.cluster = "false"
	return nil
}

// noCluster tells whether a server said that it is none of a cluster.
func noCluster(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cluster support disabled")
}

// refresh asks for the slots. Slots that nobody serves keep the node they had.
func (r *router) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	asked := r.question.Add(1)
	ranges, err := r.client.ClusterSlots(ctx).Result()
	if err != nil {
		return err
	}
	r.learn(ranges, asked)
	if len(*r.nodes.Load()) == 0 {
		return load.Failed("clusterdown", r.seeds, errors.New("no node serves any slot"))
	}
	return nil
}

// learn takes in the answer to a question. A redirect that came after the question is the newer news: on a busy
// machine an answer may wait until the node that it names for a slot has left.
func (r *router) learn(ranges []goredis.ClusterSlot, asked uint32) {
	for _, s := range ranges {
		if len(s.Nodes) == 0 || s.Start < 0 || s.End >= slots {
			continue
		}
		n := r.number(s.Nodes[0].Addr) // the master
		for i := s.Start; i <= s.End; i++ {
			was := r.owner[i].Load() // before the look at moved: a redirect that comes after that look wins, too
			if r.moved[i].Load() < asked {
				r.owner[i].CompareAndSwap(was, n)
			}
		}
	}
}

// run refreshes when asked to.
func (r *router) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.stale:
		}
		// An error is no news: the operations that asked have told theirs, and the
		// next one that fails asks again.
		_ = r.refresh(ctx)
		if linger.For(ctx, refreshPause) != nil {
			return
		}
	}
}

// suspect asks for a refresh soon.
func (r *router) suspect() {
	if r.cluster == "false" {
		return
	}
	select {
	case r.stale <- struct{}{}:
	default: // one is due already
	}
}

// number is a node's number, given to it when it is new.
func (r *router) number(addr string) int32 {
	for i, a := range *r.nodes.Load() {
		if a == addr {
			return int32(i)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.nodes.Load()
	for i, a := range known {
		if a == addr {
			return int32(i)
		}
	}
	grown := append(append(make([]string, 0, len(known)+1), known...), addr)
	r.nodes.Store(&grown)
	return int32(len(known))
}

// another is a node that serves some slot and is not this one; -1 when none is known.
func (r *router) another(than int32) int32 {
	for i := range r.owner {
		if n := r.owner[i].Load(); n >= 0 && n != than {
			return n
		}
	}
	return -1
}

// redirect reads "MOVED 3999 10.0.0.2:6379" or "ASK 3999 10.0.0.2:6379", which the node
// at from sent; MOVED is remembered. An address without a host means the same host.
func (r *router) redirect(text []byte, from string) (node int32, ask, ok bool) {
	f := strings.Fields(string(text))
	if len(f) != 3 || f[0] != "MOVED" && f[0] != "ASK" {
		return 0, false, false
	}
	slot, err := number([]byte(f[1]))
	if err != nil || slot < 0 || slot >= slots {
		return 0, false, false
	}
	addr := f[2]
	if strings.HasPrefix(addr, ":") {
		host, _, err := net.SplitHostPort(from)
		if err != nil {
			return 0, false, false
		}
		addr = net.JoinHostPort(host, addr[1:])
	}
	node = r.number(addr)
	if f[0] == "ASK" {
		return node, true, true
	}
	if !r.alone {
		r.moved[slot].Store(r.question.Load())
		r.owner[slot].Store(node)
		r.suspect()
	}
	return node, false, true
}

func (r *router) close() error {
	r.cancel()
	r.done.Wait()
	return r.client.Close()
}
