package etcd

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/database"
)

var _ database.Handwritten = (*Etcd)(nil)

// Handwritten implements database.Handwritten: a Get of etcd's own client.
func (*Etcd) Handwritten(ctx context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	client, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: strings.Split(properties[PropEndpoints], ",")})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	read := func(ctx context.Context, key string) error {
		_, err := client.Get(ctx, "usertable/"+key)
		return err
	}
	return read, client.Close, nil
}
