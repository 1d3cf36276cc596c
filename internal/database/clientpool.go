package database

import (
	"context"
	"slices"
	"sync"
)

// ClientPool shares clients of type C between workers with equal settings of type K. The last worker closes the
// client. The zero value is an empty pool. All methods are safe for concurrent use.
type ClientPool[K comparable, C any] struct {
	mu      sync.Mutex
	clients map[K][]*sharedClient[C]
}

type sharedClient[C any] struct {
	workers int           // guarded by ClientPool.mu
	ready   chan struct{} // closed when client or err is set
	client  C
	err     error
}

// ClientSource opens and closes the clients of a pool.
type ClientSource[C any] struct {
	// Open runs in the first worker's call of Acquire; the other workers wait for its result.
	Open func(context.Context) (C, error)
	// Close is nil if clients hold no resources.
	Close func(C) error
	// MaxWorkers limits the workers of one client. Zero means no limit.
	MaxWorkers int
}

// Acquire returns the client for key and its release function, which may be called twice. A failed opening fails
// all waiting workers; the next call opens a new client.
func (p *ClientPool[K, C]) Acquire(
	ctx context.Context, key K, source ClientSource[C],
) (client C, release func() error, err error) {
	shared, first := p.join(key, source.MaxWorkers)
	if first {
		shared.client, shared.err = source.Open(ctx)
		close(shared.ready)
	} else {
		select {
		case <-shared.ready:
		case <-ctx.Done():
			// The first worker still counts while it opens the client, so this one is not the last.
			p.leave(key, shared, false)
			return client, nil, ctx.Err()
		}
	}
	if shared.err != nil {
		p.leave(key, shared, true)
		return client, nil, shared.err
	}
	release = sync.OnceValue(func() error {
		if last := p.leave(key, shared, false); last && source.Close != nil {
			return source.Close(shared.client)
		}
		return nil
	})
	return shared.client, release, nil
}

// join adds a worker to a client with room, or to a new one, which the caller must open.
func (p *ClientPool[K, C]) join(key K, maxWorkers int) (shared *sharedClient[C], first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.clients[key] {
		if maxWorkers == 0 || s.workers < maxWorkers {
			s.workers++
			return s, false
		}
	}
	if p.clients == nil {
		p.clients = make(map[K][]*sharedClient[C])
	}
	shared = &sharedClient[C]{workers: 1, ready: make(chan struct{})}
	p.clients[key] = append(p.clients[key], shared)
	return shared, true
}

// leave removes a worker from a client and forgets clients that failed to open or have no workers.
func (p *ClientPool[K, C]) leave(key K, shared *sharedClient[C], failed bool) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shared.workers--
	last = shared.workers == 0
	if last || failed {
		p.clients[key] = slices.DeleteFunc(p.clients[key], func(s *sharedClient[C]) bool { return s == shared })
		if len(p.clients[key]) == 0 {
			delete(p.clients, key)
		}
	}
	return last
}

// FieldNames converts the field names of records to strings for one worker. Records mostly have the same fields in
// the same order, so the strings of the previous record are reused. The zero value is ready.
type FieldNames struct{ names []string }

// maxFieldNames bounds the memory that a record with very many fields leaves behind.
const maxFieldNames = 1024

// String returns the name of a record's i-th field as a string.
func (n *FieldNames) String(i int, text []byte) string {
	if i >= maxFieldNames {
		return string(text)
	}
	for i >= len(n.names) {
		n.names = append(n.names, "")
	}
	if n.names[i] != string(text) {
		n.names[i] = string(text)
	}
	return n.names[i]
}
