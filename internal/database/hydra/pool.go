package hydra

import (
	"fmt"
	"slices"
	"sync"

	"skerry/systems/hydra/hydraclient"
)

// pool has clients that several workers use, each with one connection to a member on which
// their operations go as frames.
type pool struct {
	mu      sync.Mutex
	clients map[string][]*shared // by what they are made of
}

// shared is a client and how many workers have it.
type shared struct {
	*hydraclient.Client
	pool    *pool // nil: it is one worker's
	key     string
	workers int
}

// take returns a client for one more worker, of at most share; 0: one by itself, with HTTP.
// Who takes it releases it.
func (p *pool) take(c hydraclient.Config, share int) (*shared, error) {
	if share == 0 || c.Dial != nil { // the latter has no name to be compared by
		alone, err := hydraclient.New(c)
		return &shared{Client: alone}, err
	}
	c.Streams = 1
	key := fmt.Sprintf("%q", []any{c.Endpoints, c.Token, c.Timeout.String(), c.Read, c.Staleness.String(), c.Ack})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.clients[key] {
		if s.workers < share {
			s.workers++
			return s, nil
		}
	}
	made, err := hydraclient.New(c)
	if err != nil {
		return nil, err
	}
	if p.clients == nil {
		p.clients = make(map[string][]*shared)
	}
	s := &shared{Client: made, pool: p, key: key, workers: 1}
	p.clients[key] = append(p.clients[key], s)
	return s, nil
}

// release gives a client back; the last worker's ends its connections.
func (s *shared) release() error {
	if s.pool == nil {
		return s.Close()
	}
	s.pool.mu.Lock()
	s.workers--
	last := s.workers == 0
	if last {
		left := slices.DeleteFunc(s.pool.clients[s.key], func(o *shared) bool { return o == s })
		if s.pool.clients[s.key] = left; len(left) == 0 {
			delete(s.pool.clients, s.key)
		}
	}
	s.pool.mu.Unlock()
	if last {
		return s.Close()
	}
	return nil
}
