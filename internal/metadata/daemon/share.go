package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"skerry/internal/advice"
	"skerry/internal/metadata/balance"
	"skerry/internal/metadata/client"
	"skerry/internal/metadata/server"
	"skerry/internal/metadata/spread"
)

// Share is the servers that have one tree together.
type Share struct {
	Name string // of this server
	Root string // the name of the one that has "/"
	// Servers are all servers, as NAME=ADDR[,ADDR...], an address for each replica; the
	// same at each.
	Servers []string
	// Balance has the server give hot subtrees to others; nil: it does not.
	Balance *balance.Policy
}

// ErrShare marks servers that cannot have a tree together.
var ErrShare = errors.New("not servers that share a tree")

// services are what a server answers from.
type services struct {
	whole, own server.Service // own is nil where it is whole
	addrs      map[string]string
	clients    []*client.Client
	router     *spread.Router    // nil where whole is the server's own tree
	balancer   *balance.Balancer // nil where the server gives nothing away
	keeping    sync.WaitGroup
	stop       context.CancelFunc
}

// keep ends what routers left half done on the server, until close.
func (s *services) keep(ctx context.Context, name string, own spread.Own, log *slog.Logger) {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.keeping.Go(func() { s.router.Keep(ctx, name, own, log) })
}

func (s *services) close() {
	if s.stop != nil {
		s.stop()
		s.keeping.Wait()
	}
	for _, c := range s.clients {
		c.Close()
	}
}

// share puts the whole tree in front of a server's own.
func (o *Options) share(own server.Service) (*services, error) {
	if o.Share == nil {
		return &services{whole: own}, nil
	}
	if o.Share.Balance != nil {
		if err := o.Share.Balance.Check(); err != nil {
			return nil, err
		}
	}
	s := &services{own: own, addrs: make(map[string]string)}
	all := make(map[string]spread.Service)
	for _, text := range o.Share.Servers {
		name, addrs, ok := strings.Cut(text, "=")
		if !ok || addrs == "" || all[name] != nil {
			return nil, fmt.Errorf("%w: server %q is not NAME=ADDR[,ADDR...], or is there twice", ErrShare, text)
		}
		s.addrs[name] = addrs
		if name == o.Share.Name {
			all[name] = own
			continue
		}
		c := client.NewOwn(addrs)
		s.clients = append(s.clients, c)
		all[name] = c
	}
	if all[o.Share.Name] == nil {
		return nil, advice.With(fmt.Errorf("%w: %q is not one of them", ErrShare, o.Share.Name), "give this server's --cluster, which is the name of one --server")
	}
	router, err := spread.NewRouter(spread.Servers{Root: o.Share.Root, Service: all})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShare, err)
	}
	s.whole, s.router = router, router
	return s, nil
}

// asked are the requests that were sent to the other servers.
func (s *services) asked(self string) map[string]uint64 {
	all := s.router.Asked()
	delete(all, self)
	return all
}
