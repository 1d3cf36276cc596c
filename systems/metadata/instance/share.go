package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/protocol"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/store"
	"skerry/systems/metadata/tree"
)

// Share configures a server that shares a tree.
type Share struct {
	Name string // of this server
	Root string // the server of "/"
	// Servers has all servers as NAME=ADDR[,ADDR...], with an address for each replica, the same list at each.
	Servers []string
	// File has the same, one line each, instead of Servers. It is read again when it changes.
	File string
	// Balance moves hot directories to other servers. nil: no balancing.
	Balance *rebalance.Policy
}

var ErrShare = errors.New("invalid list of servers")

type frontend struct {
	whole, own metadata.Service // own is nil if the server shares no tree
	clients    map[string]*client.Client
	watch      *client.StatusPoller // of the balancer; nil if there is none
	router     *cluster.Router      // nil if the server shares no tree
	balancer   *rebalance.Balancer  // nil if the server does not balance
	keeping    sync.WaitGroup
	stop       context.CancelFunc

	mu    sync.Mutex
	addrs map[string]string
}

func (s *frontend) startKeeper(ctx context.Context, name string, own cluster.OwnService, log *slog.Logger) {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.keeping.Go(func() { s.router.RunKeeper(ctx, name, own, log) })
}

func (s *frontend) close() {
	if s.stop != nil {
		s.stop()
		s.keeping.Wait()
	}
	for _, c := range s.clients {
		c.Close()
	}
}

func (o *Options) newFrontend(own metadata.Service, creds credentials) (*frontend, error) {
	if o.Share == nil {
		return &frontend{whole: own}, nil
	}
	if o.Share.Balance != nil {
		if err := o.Share.Balance.Check(); err != nil {
			return nil, err
		}
	}
	addrs, err := o.Share.readAddresses()
	if err != nil {
		return nil, err
	}
	s := &frontend{own: own, addrs: addrs, clients: make(map[string]*client.Client)}
	all := make(map[string]metadata.Service)
	for name, addr := range addrs {
		if name == o.Share.Name {
			all[name] = own
			continue
		}
		c := client.NewOwn(addr, creds.clientOptions()...)
		s.clients[name] = c
		all[name] = c
	}
	if all[o.Share.Name] == nil {
		return nil, advice.With(fmt.Errorf("%w: %q is not in the list", ErrShare, o.Share.Name), "set --cluster to the name of one --server")
	}
	router, err := cluster.NewRouter(cluster.Servers{Root: o.Share.Root, Service: all})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShare, err)
	}
	s.whole, s.router = router, router
	return s, nil
}

func (s *frontend) forwarded(self string) map[string]uint64 {
	all := s.router.Asked()
	delete(all, self)
	return all
}

func (s *frontend) logPositions(own *store.Store) func() metadata.Seen {
	return func() metadata.Seen {
		all := own.Seen()
		if s.router != nil {
			all.Add(s.router.Seen())
		}
		return all
	}
}

const addressPoll = time.Second

func (s *Share) readAddresses() (map[string]string, error) {
	lines := s.Servers
	if s.File != "" {
		text, err := os.ReadFile(s.File)
		if err != nil {
			return nil, fmt.Errorf("reading the servers' addresses: %w", err)
		}
		lines = strings.Split(string(text), "\n")
	}
	all := make(map[string]string)
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if s.File != "" && (line == "" || strings.HasPrefix(line, "#")) {
			continue
		}
		name, addrs, ok := strings.Cut(line, "=")
		if !ok || addrs == "" || all[name] != "" {
			return nil, fmt.Errorf("%w: server %q is not NAME=ADDR[,ADDR...], or is listed twice", ErrShare, line)
		}
		all[name] = addrs
	}
	return all, nil
}

func (s *frontend) currentAddresses() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.addrs)
}

// watchAddressFile follows the file of addresses until close. The set of names is fixed at the start.
func (s *frontend) watchAddressFile(ctx context.Context, share *Share, log *slog.Logger) {
	if share.File == "" {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := s.stop
	s.stop = func() { stop(); ended() }
	s.keeping.Go(func() {
		told := ""
		for linger.For(ctx, addressPoll) == nil {
			next, err := share.readAddresses()
			if err == nil {
				err = s.updateAddresses(next, log)
			}
			if now := fmt.Sprint(err); err != nil && now != told {
				log.Warn("keeping the old server addresses", "file", share.File, "error", err)
				told = now
			} else if err == nil {
				told = ""
			}
		}
	})
}

func (s *frontend) updateAddresses(next map[string]string, log *slog.Logger) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, is := slices.Sorted(maps.Keys(s.addrs)), slices.Sorted(maps.Keys(next)); !slices.Equal(was, is) {
		return fmt.Errorf("%w: the servers are %v, not %v: restart all servers to add or remove one", ErrShare, was, is)
	}
	for name, addrs := range next {
		if s.addrs[name] == addrs {
			continue
		}
		log.Info("server address changed", "server", name, "was", s.addrs[name], "is", addrs)
		s.addrs[name] = addrs
		if c := s.clients[name]; c != nil {
			c.SetAddr(addrs)
		}
		if s.watch != nil {
			s.watch.SetAddr(name, addrs)
		}
	}
	return nil
}

type metered struct {
	metadata.Service
	meter *rebalance.Meter
}

func (m metered) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	m.meter.Count(commands)
	return m.Service.Do(ctx, commands)
}

func (s *frontend) startBalancer(ctx context.Context, o Options, own metadata.Service, k backend) {
	if o.Share.Balance == nil {
		return
	}
	watch := client.NewStatusPoller(s.currentAddresses(), k.clientOptions()...)
	s.watch = watch
	options := rebalance.Options{
		Policy: *o.Share.Balance, Self: o.Share.Name, Root: o.Share.Root, Whole: s.whole, Own: own, Log: o.Log,
		Loads: func(ctx context.Context) map[string]rebalance.ServerLoad { return balancerLoads(watch.Statuses(ctx)) },
	}
	if k.replica != nil {
		node := k.replica.Node()
		options.Leads = func() bool {
			leader, ok := node.Leader()
			return ok && leader.ID == node.Self().ID
		}
	}
	s.balancer = rebalance.NewBalancer(options)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	keep := s.stop
	s.stop = func() {
		stop()
		keep()
	}
	s.keeping.Go(func() {
		defer watch.Close()
		s.balancer.Run(ctx)
	})
}

func balancerLoads(statuses map[string][]protocol.Status) map[string]rebalance.ServerLoad {
	all := make(map[string]rebalance.ServerLoad)
	for name, replicas := range statuses {
		if slices.ContainsFunc(replicas, func(s protocol.Status) bool { return s.Load != nil }) {
			all[name] = rebalance.ServerLoad{Load: protocol.SumLoad(replicas), Subtrees: replicas[0].Subtrees}
		}
	}
	return all
}

// balancerStatus returns nil if there is no balancer.
func (s *frontend) balancerStatus() *rebalance.Status {
	if s.balancer == nil {
		return nil
	}
	status := s.balancer.Status()
	return &status
}

func (s *frontend) collectors(meter *rebalance.Meter) []prometheus.Collector {
	all := []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "skerry_metadata_load_ops", Help: "Operations per second on the server's own tree, decayed with a half-life of 10 s.",
	}, func() float64 { return meter.Load().Rate })}
	for name := range s.currentAddresses() {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "skerry_metadata_asked_total", Help: "Requests on the shared tree by the server that answered them, including this one.",
			ConstLabels: prometheus.Labels{"server": name},
		}, func() float64 { return float64(s.router.Asked()[name]) }))
	}
	if s.balancer == nil {
		return all
	}
	return append(all,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "skerry_metadata_balancer_moves_total", Help: "Subtrees that the balancer has moved to other servers.",
		}, func() float64 { return float64(s.balancer.Status().Moves) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "skerry_metadata_balancer_refused_total", Help: "Moves of the balancer that failed.",
		}, func() float64 { return float64(s.balancer.Status().Refused) }))
}

func listSubtrees(t *tree.Tree) []string {
	var list []string
	page := metadata.Command{Op: metadata.List, Path: metadata.Subtrees, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		r := t.Do(page)
		for _, e := range r.Entries {
			list = append(list, metadata.Join(metadata.Subtrees, e.Name))
		}
		if page.After = r.Next; page.After == "" {
			return list
		}
	}
}
