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
	// refreshPause is the minimum time between two slot map queries.
	refreshPause = 100 * time.Millisecond
	// refreshTimeout bounds one slot map query.
	refreshTimeout = 5 * time.Second
)

// router maps slots to nodes, from any node's slot map and from redirects. Workers with equal properties share it.
type router struct {
	settings
	login database.Login
	index [groups]string // the keys of the index
	// clients query the slot map, by address. connect owns them first, then refreshLoop.
	clients map[string]*goredis.Client
	// dial is nil for connections from this process. hello is sent on every new connection.
	dial  database.DialFunc
	hello []string
	// alone keeps all operations on node 0 and ignores its redirects.
	alone bool
	// owner holds the node number by slot, -1 while unknown.
	owner [slots]atomic.Int32
	// moved is, by slot, the number of the latest query when a redirect last set the owner.
	moved    [slots]atomic.Uint32
	question atomic.Uint32
	// nodes are the addresses by number. The list only grows, so numbers stay valid.
	nodes atomic.Pointer[[]string]
	mu    sync.Mutex // held while nodes grows

	stale  chan struct{} // requests a refresh
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newRouter(ctx context.Context, s settings) (*router, error) {
	login, err := database.ReadLogin(s.access, s.user, s.password)
	if err != nil {
		return nil, err
	}
	r := &router{settings: s, login: login, index: prefixedIndex(s.prefix),
		clients: map[string]*goredis.Client{}, stale: make(chan struct{}, 1)}
	r.nodes.Store(new([]string))
	for i := range r.owner {
		r.owner[i].Store(-1)
	}
	if err := r.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the slot map from %s: %w", s.seeds, err), r.closeClients())
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
	c := goredis.NewClient(r.nodeOptions(seed))
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

func isClusterDisabled(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cluster support disabled")
}

// refresh updates the slot map. Slots without an owner keep their last node.
func (r *router) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	queryNumber := r.question.Add(1)
	ranges, err := r.fetchSlotMap(ctx)
	if err != nil {
		return err
	}
	r.applySlotMap(ranges, queryNumber)
	if len(*r.nodes.Load()) == 0 {
		return load.Failed("clusterdown", r.seeds, errors.New("no node serves any slot"))
	}
	return nil
}

// applySlotMap applies the answer to a query with its number, except for slots redirected after the query.
func (r *router) applySlotMap(ranges []ownedSlots, queryNumber uint32) {
	for _, s := range ranges {
		n := r.nodeNumber(s.addr)
		for i := s.from; i <= s.to; i++ {
			was := r.owner[i].Load() // before moved, so that a concurrent redirect wins
			if r.moved[i].Load() < queryNumber {
				r.owner[i].CompareAndSwap(was, n)
			}
		}
	}
}

func (r *router) refreshLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.stale:
		}
		// The failed operations have reported their errors; the next failure requests a refresh.
		_ = r.refresh(ctx)
		if linger.For(ctx, refreshPause) != nil {
			return
		}
	}
}

func (r *router) requestRefresh() {
	if r.cluster == "false" {
		return
	}
	select {
	case r.stale <- struct{}{}:
	default: // already scheduled
	}
}

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

// otherNode returns a node other than the given one that serves a slot, or -1.
func (r *router) otherNode(than int32) int32 {
	for i := range r.owner {
		if n := r.owner[i].Load(); n >= 0 && n != than {
			return n
		}
	}
	return -1
}

// followRedirect parses "MOVED 3999 10.0.0.2:6379" or "ASK 3999 10.0.0.2:6379" from the node at from, and records
// MOVED. It returns false for an unknown host.
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

var errSlots = errors.New("not a reply to CLUSTER SLOTS")

// fetchSlotMap queries the nodes for the slot map in random order until one answers.
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
			c = goredis.NewClient(r.nodeOptions(addrs[i]))
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

// parseSlotMap parses a reply to CLUSTER SLOTS without masters of unknown address. go-redis rejects null hosts.
func parseSlotMap(reply any, origin string) (list []ownedSlots, err error) {
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
		addr, err := parseMasterAddr(f[2], origin)
		if err != nil {
			return nil, err
		}
		if addr != "" {
			list = append(list, ownedSlots{slotRange{int(from), int(to)}, addr})
		}
	}
	return list, nil
}

// parseMasterAddr parses the address in [host, port, id, [name, value, ...]], "" if unknown.
func parseMasterAddr(node any, origin string) (string, error) {
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
	return resolveEndpoint(host, strconv.FormatInt(port, 10), origin), nil
}

// unnamed is the host of a node that prefers names and announces none.
const unnamed = "?"

// resolveEndpoint returns the address for host and port in a reply of the node at origin, "" if
// unknown. A null or empty host means the replying node, which does not know its address.
// See https://redis.io/docs/latest/commands/cluster-slots/.
func resolveEndpoint(host, port, origin string) string {
	switch host {
	case unnamed:
		return ""
	case "":
		var err error
		if host, _, err = net.SplitHostPort(origin); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

func (r *router) nodeOptions(addr string) *goredis.Options {
	return nodeOptions(addr, r.login, r.timeout)
}

// nodeOptions returns go-redis' options for one node, with retries off: callers retry.
func nodeOptions(addr string, login database.Login, timeout time.Duration) *goredis.Options {
	return &goredis.Options{
		Addr: addr, Username: login.User, Password: login.Password.Reveal(), TLSConfig: login.TLSTo(addr),
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1, DialerRetries: 1, PoolSize: 4,
		ReadTimeout: timeout, WriteTimeout: timeout, DialTimeout: timeout,
	}
}
