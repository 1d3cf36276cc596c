package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/database"
	"skerry/internal/load"
)

const (
	// away is how long a worker stays with another member before it tries the one that
	// it prefers again; it doubles with each try in vain.
	retryPreferred    = 2 * time.Second
	maxRetryPreferred = 32 * time.Second
	// learnEvery is how often a worker asks its member who else there is. The member
	// answers from what it knows, beside the worker's operations.
	learnEvery = 5 * time.Second
)

// client is one worker's. It uses one member, and the next one where that fails; an
// operation that was certainly not sent is sent to that one, others are not repeated.
type client struct {
	settings
	dial         database.DialFunc // nil: the system's
	singleMember bool              // one member's own copy is read
	decode       decoder
	buffer       []byte       // of a record to be written
	fields       []load.Field // of a record to be merged
	retries      atomic.Int64

	current        int // the endpoint in use
	preferredAfter time.Time
	preferredWait  time.Duration
	lastLearned    time.Time // when it asked last who there is

	mu    sync.Mutex
	addrs []string // preferred first; more are learnt
	conns []*clientv3.Client

	learning   sync.WaitGroup
	isLearning atomic.Bool // learning
	ctx        context.Context
	cancel     context.CancelFunc
}

var (
	_ load.Client     = (*client)(nil)
	_ load.Retrier    = (*client)(nil)
	_ load.Counter    = (*client)(nil)
	_ load.BulkClient = (*client)(nil)
)

// openClient returns a client that has reached a member.
func openClient(ctx context.Context, s settings, spread *spreader) (*client, error) {
	c := newClient(ctx, s, nil)
	c.addrs = spread.orderEndpoints(ctx, s.endpoints, s.route)
	c.conns = make([]*clientv3.Client, len(c.addrs))
	// The first operation need not connect, and whoever misspelt an address learns it here.
	if _, err := c.get(ctx, defaultTable, clientv3.WithSerializable(), clientv3.WithCountOnly()); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of etcd: %w", err), c.Close())
	}
	return c, nil
}

func newClient(ctx context.Context, s settings, dial database.DialFunc) *client {
	c := &client{settings: s, dial: dial, preferredWait: retryPreferred}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

// Retries implements load.Retrier.
func (c *client) Retries() int64 { return c.retries.Load() }

// do has a member do something. The tries are one for each member while nothing is sent.
func (c *client) do(ctx context.Context, ask func(context.Context, *clientv3.Client) error) error {
	if err := ctx.Err(); err != nil {
		return load.Failed(database.ErrorClass(err), "", err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	if c.requireLeader {
		ctx = clientv3.WithRequireLeader(ctx)
	}
	if c.current != 0 && time.Now().After(c.preferredAfter) {
		c.current = 0
	}
	for try := 1; ; try++ {
		conn, addr, count, err := c.conn(c.current)
		if err != nil {
			return load.Failed(database.ClassOther, addr, err)
		}
		if err = ask(ctx, conn); err == nil {
			c.noteServed()
			return nil
		}
		sent := !isUnsent(err)
		err = classifyError(addr, err)
		if c.singleMember || !canRetryElsewhere(err) {
			return err
		}
		c.nextEndpoint(count)
		if sent || try >= count || ctx.Err() != nil {
			return err
		}
		c.retries.Add(1)
	}
}

// noteServed notes that the member in use serves.
func (c *client) noteServed() {
	if c.current == 0 {
		c.preferredWait = retryPreferred
	}
	if now := time.Now(); !c.singleMember && now.Sub(c.lastLearned) > learnEvery {
		c.lastLearned = now
		c.learnMembers(c.current)
	}
}

// nextEndpoint goes on to the next member.
func (c *client) nextEndpoint(count int) {
	if c.current == 0 {
		c.preferredAfter = time.Now().Add(c.preferredWait)
		c.preferredWait = min(2*c.preferredWait, maxRetryPreferred)
	}
	c.current = (c.current + 1) % count
	c.learnMembers(c.current)
}

// conn is the connection to the i-th endpoint.
func (c *client) conn(i int) (conn *clientv3.Client, addr string, count int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns[i] == nil {
		c.conns[i], err = dialMember(c.addrs[i], c.dial)
	}
	return c.conns[i], c.addrs[i], len(c.addrs), err
}

// learnMembers asks a member who else there is, one question at a time: members may have joined.
func (c *client) learnMembers(i int) {
	if !c.isLearning.CompareAndSwap(false, true) {
		return
	}
	conn, _, _, err := c.conn(i)
	if err != nil {
		c.isLearning.Store(false)
		return // the operation that needs it says so
	}
	c.learning.Go(func() {
		defer c.isLearning.Store(false)
		ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
		defer cancel()
		list, err := conn.MemberList(ctx, clientv3.WithSerializable())
		if err != nil {
			return // asked again with the next failure
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, m := range list.Members {
			for _, u := range m.ClientURLs {
				parsed, err := url.Parse(u)
				if err == nil && !m.IsLearner && !slices.Contains(c.addrs, parsed.Host) {
					c.addrs = append(c.addrs, parsed.Host)
					c.conns = append(c.conns, nil)
				}
			}
		}
	})
}

// Close implements load.Client.
func (c *client) Close() error {
	c.cancel()
	c.learning.Wait()
	var errs []error
	for _, conn := range c.conns {
		if conn != nil {
			errs = append(errs, closeClient(conn))
		}
	}
	c.conns = nil
	return errors.Join(errs...)
}
