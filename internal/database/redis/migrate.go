package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/base/linger"
)

const (
	// migrateKeys is how many keys one MIGRATE takes at most, of up to maxMigrate
	// bytes together.
	migrateKeys = 64
	maxMigrate  = 128 << 10
)

// migrateSlots moves slots by Redis' own MIGRATE, which stops the source for a round trip
// each time: one at a time, and after each the source serves for as long.
func (s *stream) migrateSlots(ctx context.Context, jobs []job) error {
	if len(jobs) == 0 {
		return nil
	}
	var slots []int
	for _, j := range jobs {
		slots = append(slots, j.slot)
	}
	if err := setSlotState(ctx, s.Client, slots, "MIGRATING", s.to.self.id); err != nil {
		return err
	}
	for _, slot := range slots {
		if err := s.migrateSlot(ctx, slot); err != nil {
			return err
		}
	}
	return s.assignSlots(ctx, slots)
}

func (s *stream) migrateSlot(ctx context.Context, slot int) error {
	for {
		keys, size, err := readMigrateKeys(ctx, s.Client, slot)
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := s.migratePaced(ctx, keys); err != nil {
			return fmt.Errorf("moving keys of slot %d: %w", slot, err)
		}
		s.bytes.Add(int64(size))
	}
}

// migratePaced has the source send keys, and lets it serve for as long as that has stopped it.
func (s *stream) migratePaced(ctx context.Context, keys []string) error {
	s.one.Lock()
	defer s.one.Unlock()
	began := time.Now()
	if err := migrateTo(ctx, s.Client, s.to.member, keys, "REPLACE"); err != nil {
		return err
	}
	return linger.For(ctx, time.Since(began))
}

// readMigrateKeys are keys of a slot for one MIGRATE, and their size in bytes.
func readMigrateKeys(ctx context.Context, at *goredis.Client, slot int) (keys []string, size int, err error) {
	all, err := at.ClusterGetKeysInSlot(ctx, slot, migrateKeys).Result()
	if err != nil || len(all) == 0 {
		return nil, 0, err
	}
	pipe := at.Pipeline()
	values := make([]*goredis.StringCmd, len(all))
	for i, key := range all {
		values[i] = pipe.Dump(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each key has its own answer
	for i, key := range all {
		// A key that has gone meanwhile is no error: MIGRATE does without it.
		if err := values[i].Err(); err != nil && !isKeyGone(err) {
			return nil, 0, err
		}
		if n := len(key) + len(values[i].Val()); len(keys) == 0 || size+n <= maxMigrate {
			keys, size = append(keys, key), size+n
		}
	}
	return keys, size, nil
}

// isKeyGone tells whether a server says that it does not have a key: of a slot on the move it does
// so by sending who asks to where the slot moves.
func isKeyGone(err error) bool {
	_, ask := goredis.IsAskError(err)
	return ask || errors.Is(err, goredis.Nil)
}

// migrateTo has a server send keys of one slot to another.
func migrateTo(ctx context.Context, at *goredis.Client, to *member, keys []string, options ...any) error {
	_, port, err := net.SplitHostPort(to.addr)
	if err != nil {
		return err
	}
	args := append([]any{"MIGRATE", to.host.Addr(), port, "", 0, strconv.FormatInt(linkTimeout.Milliseconds(), 10)}, options...)
	args = append(args, "KEYS")
	for _, k := range keys {
		args = append(args, k)
	}
	return at.Do(ctx, args...).Err()
}
