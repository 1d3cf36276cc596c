package mongodb

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/database"
)

// poolSize is how many workers may have an operation on one server at the same time.
const poolSize = 2048

// driverClient is the driver's client that workers share.
type driverClient struct {
	client  *mongo.Client
	workers atomic.Int64
	// commands is how many commands of operations were sent, counted where the driver
	// tries again.
	commands   atomic.Int64
	operations atomic.Int64 // operations
}

// dataCommands are the commands that operations are made of.
var dataCommands = map[string]bool{"find": true, "update": true, "insert": true, "delete": true}

// open returns a worker's client that has reached a server.
func (p *Pool) open(ctx context.Context, s settings) (*client, error) {
	sh, release, err := p.drivers.Acquire(ctx, s, database.ClientSource[*driverClient]{
		Open:  func(context.Context) (*driverClient, error) { return connect(s) },
		Close: func(sh *driverClient) error { return disconnect(sh.client) },
	})
	if err != nil {
		return nil, err
	}
	sh.workers.Add(1)
	c := &client{settings: s, driverClient: sh, release: release}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// The ping detects a wrong address before the first operation.
	if err := sh.client.Ping(ctx, nil); err != nil {
		_ = c.Close() // the error that counts is that of the ping
		return nil, fmt.Errorf("opening a client of mongodb: %w", classify(err))
	}
	return c, nil
}

// connect opens a driver's client, which connects in the background.
func connect(s settings) (*driverClient, error) {
	sh := &driverClient{}
	o := drv.Client().SetMaxPoolSize(poolSize).SetServerSelectionTimeout(s.timeout).SetConnectTimeout(s.timeout)
	// These options precede ApplyURI, so that the URL overrides them.
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
	return sh, nil
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
