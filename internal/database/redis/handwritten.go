package redis

import (
	"context"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database"
)

var _ database.Handwritten = (*Redis)(nil)

// Handwritten implements database.Handwritten: HGETALL with go-redis' cluster client.
func (*Redis) Handwritten(_ context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, nil, err
	}
	client := goredis.NewClusterClient(clusterOptions(strings.Split(s.seeds, ","), s))
	return func(ctx context.Context, key string) error { return client.HGetAll(ctx, key).Err() }, client.Close, nil
}
