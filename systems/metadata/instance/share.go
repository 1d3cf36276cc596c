package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"skerry/internal/base/advice"
	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/server"
	"skerry/systems/metadata/store"
)

// Share is the servers that have one tree together.
type Share struct {
	Name string // of this server
	Root string // the name of the one that has "/"
	// Servers are all servers, as NAME=ADDR[,ADDR...], an address for each replica; the
	// same at each.
	Servers []string
	// File has the same, a line each, in place of Servers. It is read again when it changes: the
	// servers that it names are at their new addresses from then on.
	File string
	// Balance has the server give hot subtrees to others; nil: it does not.
	Balance *rebalance.Policy
}

// ErrShare marks servers that cannot have a tree together.
var ErrShare = errors.New("not servers that share a tree")

// frontend are what a server answers from.
type frontend struct {
	whole, own server.Service // own is nil where it is whole
	clients    map[string]*client.Client
	watch      *client.StatusPoller // the balancer's, nil for none
	router     *cluster.Router      // nil where whole is the server's own tree
	balancer   *rebalance.Balancer  // nil where the server gives nothing away
	keeping    sync.WaitGroup
	stop       context.CancelFunc

	mu    sync.Mutex
	addrs map[string]string
}

// startKeeper ends what routers left half done on the server, until close.
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

// newFrontend puts the whole tree in front of a server's own.
func (o *Options) newFrontend(own server.Service, who credentials) (*frontend, error) {
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
	all := make(map[string]cluster.Service)
	for name, addr := range addrs {
		if name == o.Share.Name {
			all[name] = own
			continue
		}
		c := client.NewOwn(addr, who.clientOptions()...)
		s.clients[name] = c
		all[name] = c
	}
	if all[o.Share.Name] == nil {
		return nil, advice.With(fmt.Errorf("%w: %q is not one of them", ErrShare, o.Share.Name), "give this server's --cluster, which is the name of one --server")
	}
	router, err := cluster.NewRouter(cluster.Servers{Root: o.Share.Root, Service: all})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShare, err)
	}
	s.whole, s.router = router, router
	return s, nil
}

// forwarded are the requests that were sent to the other servers.
func (s *frontend) forwarded(self string) map[string]uint64 {
	all := s.router.Asked()
	delete(all, self)
	return all
}

// logPositions is how far the servers' logs are, as far as this one has heard.
func (s *frontend) logPositions(own *store.Store) func() metadata.Seen {
	return func() metadata.Seen {
		all := own.Seen()
		if s.router != nil {
			all.Add(s.router.Seen())
		}
		return all
	}
}
