package hydrabench

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// perConnection is how many workers share a connection, as etcd's own benchmark has it
// with 1,000 clients on 100 connections.
const perConnection = 10

// openEtcd is through etcd's client, at the member that leads: the first endpoint, which
// it makes the leader.
func openEtcd(ctx context.Context, j job) (operations, error) {
	var clients []*clientv3.Client
	closeAll := func() error {
		var errs []error
		for _, c := range clients {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	for range max(1, j.Workers/perConnection) {
		c, err := clientv3.New(clientv3.Config{Endpoints: j.Endpoints[:1], DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return operations{}, errors.Join(fmt.Errorf("connecting to etcd: %w", err), closeAll())
		}
		clients = append(clients, c)
	}
	if err := lead(ctx, j.Endpoints); err != nil {
		return operations{}, errors.Join(err, closeAll())
	}
	next := make(chan *clientv3.Client, j.Workers+len(clients))
	for i := range max(j.Workers, 1) {
		next <- clients[i%len(clients)]
	}
	return operations{
		write: func(ctx context.Context, key string, value []byte) error {
			c := <-next
			defer func() { next <- c }()
			_, err := c.Put(ctx, benchTable+"/"+key, string(value))
			return err
		},
		close: closeAll,
	}, nil
}

// lead makes the member at the first endpoint the leader.
func lead(ctx context.Context, endpoints []string) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer c.Close()
	first, err := c.Status(ctx, endpoints[0])
	if err != nil {
		return fmt.Errorf("asking etcd who leads: %w", err)
	}
	wanted := first.Header.MemberId
	if first.Leader == wanted {
		return nil
	}
	for _, e := range endpoints[1:] {
		s, err := c.Status(ctx, e)
		if err != nil || s.Header.MemberId != s.Leader {
			continue
		}
		at, err := clientv3.New(clientv3.Config{Endpoints: []string{e}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return fmt.Errorf("connecting to etcd's leader: %w", err)
		}
		_, err = at.MoveLeader(ctx, wanted)
		if err = errors.Join(err, at.Close()); err != nil {
			return fmt.Errorf("moving etcd's leader: %w", err)
		}
		return nil
	}
	return errors.New("nobody leads etcd")
}
