package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/load"
)

const (
	// refreshPause is the least time between two questions for the slots: while
	// slots move, every move causes redirects at every worker.
	refreshPause = 100 * time.Millisecond
	// refreshTimeout bounds one question.
	refreshTimeout = 5 * time.Second
)

// router maps slots to nodes. All workers with the same properties share one. It asks
// whichever node answers for the slots. A redirect corrects single slots meanwhile.
type router struct {
	settings
	clients map[string]*goredis.Client // that ask for the slots, by address; of connect, then of run
	// dial connects, where that is not from where this process is; hello is sent on
	// every new connection.
	dial  database.DialFunc
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
	r := &router{settings: s, clients: map[string]*goredis.Client{}, stale: make(chan struct{}, 1)}
	r.nodes.Store(new([]string))
	for i := range r.owner {
		r.owner[i].Store(-1)
	}
	if err := r.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("asking %s for the cluster's nodes: %w", s.seeds, err), r.closeClients())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	r.done.Go(func() { r.refreshLoop(run) })
	return r, nil
}

func (r *router) connect(ctx context.Context) error {
	if r.cluster != "false" {
		if err := r.refresh(ctx); r.cluster == "true" || !isClusterDisabled(err) {
			return err
		}
	}
	seed, _, _ := strings.Cut(r.seeds, ",")
	c := goredis.NewClient(nodeOptions(seed, r.settings))
	if err := errors.Join(c.Ping(ctx).Err(), c.Close()); err != nil {
		return err
	}
	n := r.nodeNumber(seed)
	for i := range r.owner {
		r.owner[i].Store(n)
	}
	r.cluster = "false"
	return nil
}

// isClusterDisabled tells whether a server said that it is none of a cluster.
func isClusterDisabled(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cluster support disabled")
}

// refresh asks for the slots. Slots that nobody serves keep the node they had.
func (r *router) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	asked := r.question.Add(1)
	ranges, err := r.fetchSlotMap(ctx)
	if err != nil {
		return err
	}
	r.applySlotMap(ranges, asked)
	if len(*r.nodes.Load()) == 0 {
		return load.Failed("clusterdown", r.seeds, errors.New("no node serves any slot"))
	}
	return nil
}

// applySlotMap takes in the answer to a question. A redirect that came after the question is the newer news: on a busy
// machine an answer may wait until the node that it names for a slot has left.
func (r *router) applySlotMap(ranges []ownedSlots, asked uint32) {
	for _, s := range ranges {
		n := r.nodeNumber(s.addr)
		for i := s.from; i <= s.to; i++ {
			was := r.owner[i].Load() // before the look at moved: a redirect that comes after that look wins, too
			if r.moved[i].Load() < asked {
				r.owner[i].CompareAndSwap(was, n)
			}
		}
	}
}

// refreshLoop refreshes when asked to.
func (r *router) refreshLoop(ctx context.Context) {
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

// requestRefresh asks for a refresh soon.
func (r *router) requestRefresh() {
	if r.cluster == "false" {
		return
	}
	select {
	case r.stale <- struct{}{}:
	default: // one is due already
	}
}

// nodeNumber is a node's number, given to it when it is new.
func (r *router) nodeNumber(addr string) int32 {
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

// otherNode is a node that serves some slot and is not this one; -1 when none is known.
func (r *router) otherNode(than int32) int32 {
	for i := range r.owner {
		if n := r.owner[i].Load(); n >= 0 && n != than {
			return n
		}
	}
	return -1
}

// followRedirect reads "MOVED 3999 10.0.0.2:6379" or "ASK 3999 10.0.0.2:6379", which the node
// at from sent; MOVED is remembered. A redirect to an unknown host is not ok.
func (r *router) followRedirect(text []byte, from string) (node int32, ask, ok bool) {
	f := strings.Fields(string(text))
	if len(f) != 3 || f[0] != "MOVED" && f[0] != "ASK" {
		return 0, false, false
	}
	slot, err := parseNumber([]byte(f[1]))
	if err != nil || slot < 0 || slot >= slots {
		return 0, false, false
	}
	colon := strings.LastIndexByte(f[2], ':') // the host may be IPv6, without brackets
	if colon < 0 {
		return 0, false, false
	}
	addr := resolveEndpoint(f[2][:colon], f[2][colon+1:], from)
	if addr == "" {
		return 0, false, false
	}
	node = r.nodeNumber(addr)
	if f[0] == "ASK" {
		return node, true, true
	}
	if !r.alone {
		r.moved[slot].Store(r.question.Load())
		r.owner[slot].Store(node)
		r.requestRefresh()
	}
	return node, false, true
}

func (r *router) close() error {
	r.cancel()
	r.done.Wait()
	return r.closeClients()
}

func (r *router) closeClients() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// ownedSlots is a range of slots and the address of the master that serves it.
type ownedSlots struct {
	slotRange
	addr string
}

// errSlots is an answer to CLUSTER SLOTS that does not have its form.
var errSlots = errors.New("not a reply to CLUSTER SLOTS")

// fetchSlotMap asks one node after another for the slots, in random order, until one answers.
func (r *router) fetchSlotMap(ctx context.Context) ([]ownedSlots, error) {
	addrs := slices.Clone(*r.nodes.Load())
	for _, seed := range strings.Split(r.seeds, ",") {
		if !slices.Contains(addrs, seed) {
			addrs = append(addrs, seed)
		}
	}
	var err error
	for _, i := range rand.Perm(len(addrs)) {
		c := r.clients[addrs[i]]
		if c == nil {
			c = goredis.NewClient(nodeOptions(addrs[i], r.settings))
			r.clients[addrs[i]] = c
		}
		var reply any
		if reply, err = c.Do(ctx, "CLUSTER", "SLOTS").Result(); err == nil {
			return parseSlotMap(reply, addrs[i])
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// parseSlotMap reads what the node at asked answered to CLUSTER SLOTS. (go-redis reads no
// answer in which a host is null.) Slots whose master has no known address are left out.
func parseSlotMap(reply any, asked string) (list []ownedSlots, err error) {
	ranges, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: %v", errSlots, reply)
	}
	for _, x := range ranges {
		f, ok := x.([]any)
		if !ok || len(f) < 2 {
			return nil, fmt.Errorf("%w: %v", errSlots, x)
		}
		from, isFrom := f[0].(int64)
		to, isTo := f[1].(int64)
		if !isFrom || !isTo || from < 0 || to >= slots {
			return nil, fmt.Errorf("%w: %v", errSlots, x)
		}
		if len(f) == 2 {
			continue
		}
		addr, err := parseMasterAddr(f[2], asked)
		if err != nil {
			return nil, err
		}
		if addr != "" {
			list = append(list, ownedSlots{slotRange{int(from), int(to)}, addr})
		}
	}
	return list, nil
}

// parseMasterAddr is the address in [host, port, id, [name, value, ...]], "" if it is unknown.
func parseMasterAddr(node any, asked string) (string, error) {
	f, ok := node.([]any)
	if !ok || len(f) < 2 {
		return "", fmt.Errorf("%w: %v", errSlots, node)
	}
	host, named := f[0].(string)
	port, hasPort := f[1].(int64)
	if !hasPort || f[0] != nil && !named {
		return "", fmt.Errorf("%w: %v", errSlots, node)
	}
	if host == unnamed && len(f) > 3 {
		metadata, _ := f[3].([]any)
		if i := slices.Index(metadata, any("ip")); i >= 0 && i+1 < len(metadata) {
			if ip, _ := metadata[i+1].(string); ip != "" {
				host = ip
			}
		}
	}
	return resolveEndpoint(host, strconv.FormatInt(port, 10), asked), nil
}

// unnamed is the host of a node that prefers names (cluster-preferred-endpoint-type hostname)
// and announces none.
const unnamed = "?"

// resolveEndpoint is the address that the node at asked calls host and port, "" if it is unknown. A
// host that is null or empty is that of the node itself: it does not know how clients reach it.
// See https://redis.io/docs/latest/commands/cluster-slots/.
func resolveEndpoint(host, port, asked string) string {
	switch host {
	case unnamed:
		return ""
	case "":
		var err error
		if host, _, err = net.SplitHostPort(asked); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// nodeOptions are go-redis' options for one node. Its retries are off: a caller that
// wants to try again says so.
func nodeOptions(addr string, s settings) *goredis.Options {
	return &goredis.Options{
		Addr: addr, Username: s.user, Password: s.password,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1, DialerRetries: 1, PoolSize: 4,
		ReadTimeout: s.timeout, WriteTimeout: s.timeout, DialTimeout: s.timeout,
	}
}
