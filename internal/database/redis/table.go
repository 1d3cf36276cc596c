package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/install"
)

var (
	_ database.External     = (*Redis)(nil)
	_ database.TableManager = (*Redis)(nil)
)

// scanBatch is the number of keys that a server looks at for one SCAN, and the most that one UNLINK removes.
const scanBatch = 1000

func (*Redis) ServerProperties(servers []string, table string) map[string]string {
	return map[string]string{PropHosts: strings.Join(servers, ","), PropPrefix: table + ":"}
}

func (d *Redis) ServerVersion(ctx context.Context, server string, properties map[string]string) (_ string, err error) {
	s, err := parseSettings(properties)
	if err != nil {
		return "", err
	}
	login, err := database.ReadLogin(s.access, s.user, s.password)
	if err != nil {
		return "", err
	}
	c := goredis.NewClient(nodeOptions(server, login, s.timeout))
	defer func() { err = errors.Join(err, c.Close()) }()
	info, err := c.Info(ctx, "server").Result()
	return d.kind.infoVersion(info), err
}

// infoVersion returns the version in an answer to INFO. Products that are compatible with Redis also report the version of
// Redis that they resemble; they are named.
func (k kind) infoVersion(info string) string {
	for _, product := range []string{Valkey, "dragonfly", Name} {
		switch v := install.MatchVersion(`\b` + product + `_version:(\S+)`)(info); {
		case v != "" && product == k.name:
			return v
		case v != "":
			return product + " " + v
		}
	}
	return ""
}

// CountTable implements database.TableManager: the keys with the prefix, without the index. A key that moves to another
// master meanwhile may count twice or not at all.
func (d *Redis) CountTable(ctx context.Context, properties map[string]string) (int64, error) {
	var n atomic.Int64
	err := d.visitPrefix(ctx, properties, func(_ context.Context, _ *goredis.Client, keys []string, index map[string]bool) error {
		for _, k := range keys {
			if !index[k] {
				n.Add(1)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("count the keys of the table: %w", err)
	}
	return n.Load(), nil
}

// DropTable implements database.TableManager. It removes the keys with the prefix one by one, and never flushes.
func (d *Redis) DropTable(ctx context.Context, properties map[string]string) error {
	err := d.visitPrefix(ctx, properties, func(ctx context.Context, c *goredis.Client, keys []string, _ map[string]bool) error {
		pipe := c.Pipeline()
		for _, k := range keys { // keys of several slots cannot share a command
			pipe.Unlink(ctx, k)
		}
		_, err := pipe.Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the keys of the table: %w", err)
	}
	return nil
}

// visitPrefix calls visit for the keys with the table's prefix on each master, in batches that are not empty; masters
// are visited at the same time.
func (d *Redis) visitPrefix(
	ctx context.Context, properties map[string]string,
	visit func(ctx context.Context, c *goredis.Client, keys []string, index map[string]bool) error,
) (err error) {
	s, err := parseSettings(properties)
	if err != nil {
		return err
	}
	if s.prefix == "" { // it would visit what belongs to others
		return fmt.Errorf("%w: %s is missing", ErrProperty, PropPrefix)
	}
	r, err := newRouter(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	masters := map[string]bool{}
	nodes := *r.nodes.Load()
	for i := range r.owner {
		if n := r.owner[i].Load(); n >= 0 {
			masters[nodes[n]] = true
		}
	}
	index := map[string]bool{}
	for _, k := range r.index {
		index[k] = true
	}
	g, ctx := errgroup.WithContext(ctx)
	for addr := range masters {
		g.Go(func() (err error) {
			c := goredis.NewClient(r.nodeOptions(addr))
			defer func() { err = errors.Join(err, c.Close()) }()
			return scanPrefix(ctx, c, s.prefix, func(keys []string) error { return visit(ctx, c, keys, index) })
		})
	}
	return g.Wait()
}

// scanPrefix calls visit for the keys of one server with a prefix. SCAN returns each key that exists throughout, some of
// them twice; visit gets each key once.
func scanPrefix(ctx context.Context, c *goredis.Client, prefix string, visit func(keys []string) error) error {
	seen := map[string]bool{}
	for cursor := uint64(0); ; {
		keys, next, err := c.Scan(ctx, cursor, prefix+"*", scanBatch).Result()
		if err != nil {
			return fmt.Errorf("scan %s: %w", c.Options().Addr, err)
		}
		var fresh []string
		for _, k := range keys {
			if !seen[k] {
				seen[k] = true
				fresh = append(fresh, k)
			}
		}
		if len(fresh) > 0 {
			if err := visit(fresh); err != nil {
				return fmt.Errorf("visit the keys on %s: %w", c.Options().Addr, err)
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
