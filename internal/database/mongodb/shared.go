package mongodb

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"
)

// poolSize is how many workers may have an operation on one server at the same time.
const poolSize = 2048

// shared is the driver's client that workers share.
type shared struct {
	users  int
	client *mongo.Client
	// commands is how many commands of operations were sent, counted where the driver
	// tries again.
	commands atomic.Int64
	asked    atomic.Int64 // operations
}

// dataCommands are the commands that operations are made of.
var dataCommands = map[string]bool{"find": true, "update": true, "insert": true, "delete": true}

// open returns a worker's client that has reached a server.
func (p *Pool) open(ctx context.Context, s settings) (*client, error) {
	sh, err := p.acquire(s)
	if err != nil {
		return nil, err
	}
	c := &client{settings: s, shared: sh, release: func() error { return p.release(s, sh) }}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// Whoever misspelt an address learns it here.
	if err := sh.client.Ping(ctx, nil); err != nil {
		_ = c.Close() // the error that counts is that of the ping
		return nil, fmt.Errorf("opening a client of mongodb: %w", classify(err))
	}
	return c, nil
}

func (p *Pool) acquire(s settings) (*shared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared == nil {
		p.shared = make(map[settings]*shared)
	}
	sh := p.shared[s]
	if sh == nil {
		sh = &shared{}
		o := drv.Client().SetMaxPoolSize(poolSize).SetServerSelectionTimeout(s.timeout).SetConnectTimeout(s.timeout)
		// Set before the address, so that what that says goes before.
		o.SetRetryReads(s.retry).SetRetryWrites(s.retry).SetAppName("skerry")
		o.ApplyURI(s.url)
		if s.retry {
			o.SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if dataCommands[e.CommandName] {
					sh.commands.Add(1)
				}
			}})
		}
		var err error
		if sh.client, err = mongo.Connect(o); err != nil {
			return nil, fmt.Errorf("making a client of mongodb: %w", err)
		}
		p.shared[s] = sh
	}
	sh.users++
	return sh, nil
}

// release gives the driver's client back; the last user ends it.
func (p *Pool) release(s settings, sh *shared) error {
	p.mu.Lock()
	sh.users--
	last := sh.users == 0
	if last && p.shared[s] == sh {
		delete(p.shared, s)
	}
	p.mu.Unlock()
	if !last {
		return nil
	}
	return disconnect(sh.client)
}

// disconnect ends a driver's client.
func disconnect(c *mongo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	if err := c.Disconnect(ctx); err != nil {
		return fmt.Errorf("closing a client of mongodb: %w", err)
	}
	return nil
}
