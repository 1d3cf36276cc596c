package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/base/linger"
)

// handOverScript hands one slot over and returns 1 if the slot equals its copy; else it
// returns 0.
//
//	KEYS  the copied keys
//	ARGV  the slot, the target's id, and the digest of each key's value and expiry
const handOverScript = `
if redis.call('CLUSTER', 'COUNTKEYSINSLOT', ARGV[1]) ~= #KEYS then return 0 end
for i, key in ipairs(KEYS) do
  local value = redis.call('DUMP', key)
  if not value then return 0 end
  local expiry = string.format('%.0f', redis.call('PEXPIRETIME', key))
  if redis.sha1hex(value .. expiry) ~= ARGV[i + 2] then return 0 end
end
redis.call('CLUSTER', 'SETSLOT', ARGV[1], 'MIGRATING', ARGV[2])
for _, key in ipairs(KEYS) do redis.call('DEL', key) end
return 1`

var handOverDigest = digestRecord(handOverScript, "")

func digestRecord(value, expiry string) string {
	h := sha1.New()
	h.Write([]byte(value))
	h.Write([]byte(expiry))
	return hex.EncodeToString(h.Sum(nil))
}

type batch struct {
	copies []slotCopy
	slow   []job // for MIGRATE
}

type slotCopy struct {
	job
	keys   []string
	values []string // as DUMP serializes them
	expiry []int64  // Unix time in ms, -1 for never
}

// readBatch reads the records of as many jobs as the pace allows, and requeues the others.
func (s *stream) readBatch(ctx context.Context, q *queue, jobs []job) (batch, error) {
	chosen, err := s.chooseJobs(ctx, jobs)
	if err != nil {
		return batch{}, err
	}
	q.requeue(jobs[len(chosen.copies)+len(chosen.slow):]...)
	b, err := chosen, s.readKeys(ctx, chosen.copies)
	if err != nil {
		return b, err
	}
	return b, s.readValues(ctx, b.copies)
}

// chooseJobs selects the first jobs within the pace, and those that need MIGRATE.
func (s *stream) chooseJobs(ctx context.Context, jobs []job) (b batch, err error) {
	pipe := s.Pipeline()
	counts := make([]*goredis.IntCmd, len(jobs))
	for i, j := range jobs {
		counts[i] = pipe.ClusterCountKeysInSlot(ctx, j.slot)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return b, fmt.Errorf("counting keys: %w", err)
	}
	limit, keys := s.pace.limit(), 0
	for i, j := range jobs {
		n := int(counts[i].Val())
		if i > 0 && keys+n > limit {
			break
		}
		keys += n
		if !s.scripted || n > maxScriptKeys || j.tries >= copyTries {
			b.slow = append(b.slow, j)
		} else {
			b.copies = append(b.copies, slotCopy{job: j})
		}
	}
	return b, nil
}

func (s *stream) readKeys(ctx context.Context, copies []slotCopy) error {
	pipe := s.Pipeline()
	cmds := make([]*goredis.StringSliceCmd, len(copies))
	for i, k := range copies {
		cmds[i] = pipe.ClusterGetKeysInSlot(ctx, k.slot, maxScriptKeys)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("listing keys: %w", err)
	}
	for i := range copies {
		copies[i].keys = cmds[i].Val()
	}
	return nil
}

// readValues reads the records. The script detects records that were deleted meanwhile.
func (s *stream) readValues(ctx context.Context, copies []slotCopy) error {
	pipe := s.Pipeline()
	began := pipe.Time(ctx)
	var values []*goredis.StringCmd
	var expiries []*goredis.DurationCmd
	for _, k := range copies {
		for _, key := range k.keys {
			values = append(values, pipe.Dump(ctx, key))
			expiries = append(expiries, pipe.PExpireTime(ctx, key))
		}
	}
	ended := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil && err != goredis.Nil {
		return fmt.Errorf("reading records: %w", err)
	}
	keys, bytes := 0, 0
	for i := range copies {
		k := &copies[i]
		all := k.keys
		k.keys = nil
		for _, key := range all {
			value, expiry := values[keys], expiries[keys]
			keys++
			if value.Err() != nil {
				continue
			}
			k.keys = append(k.keys, key)
			k.values = append(k.values, value.Val())
			k.expiry = append(k.expiry, expiryMilliseconds(expiry.Val()))
			bytes += len(key) + len(value.Val())
		}
	}
	s.pace.adjust(keys, bytes, ended.Val().Sub(began.Val()))
	return nil
}

// expiryMilliseconds converts the reply to PEXPIRETIME. go-redis does not scale negative replies.
func expiryMilliseconds(d time.Duration) int64 {
	if d < 0 {
		return int64(d)
	}
	return d.Milliseconds()
}

// copyBatch copies records to the target, after removing those of earlier tries.
func (s *stream) copyBatch(ctx context.Context, b batch) error {
	pipe := s.target.Pipeline()
	prepare := func(j job) {
		pipe.Do(ctx, "CLUSTER", "SETSLOT", j.slot, "IMPORTING", s.from.self.id)
		for _, key := range j.stale {
			pipe.Do(ctx, "ASKING")
			pipe.Del(ctx, key)
		}
	}
	bytes := 0
	for _, k := range b.copies {
		prepare(k.job)
		for i, key := range k.keys {
			bytes += len(key) + len(k.values[i])
			if k.expiry[i] < 0 {
				pipe.Do(ctx, "RESTORE-ASKING", key, 0, k.values[i], "REPLACE")
			} else {
				pipe.Do(ctx, "RESTORE-ASKING", key, k.expiry[i], k.values[i], "REPLACE", "ABSTTL")
			}
		}
	}
	for _, j := range b.slow {
		prepare(j)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("copying records: %w", err)
	}
	s.bytes.Add(int64(bytes))
	return nil
}

func (s *stream) handOverSlots(ctx context.Context, q *queue, copies []slotCopy) (over []int, err error) {
	if len(copies) == 0 {
		return nil, nil
	}
	keys := 0
	pipe := s.Pipeline()
	began := pipe.Time(ctx) // the server's own clock measures how long it is blocked
	verdicts := make([]*goredis.Cmd, len(copies))
	for i, k := range copies {
		args := []any{strconv.Itoa(k.slot), s.to.self.id}
		for j := range k.keys {
			args = append(args, digestRecord(k.values[j], strconv.FormatInt(k.expiry[j], 10)))
		}
		keys += len(k.keys)
		verdicts[i] = pipe.EvalSha(ctx, handOverDigest, k.keys, args...)
	}
	ended := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("handing slots over: %w", err)
	}
	s.pace.adjust(keys, 0, ended.Val().Sub(began.Val()))
	for i, k := range copies {
		if verdicts[i].Val() == int64(1) {
			over = append(over, k.slot)
		} else {
			q.requeue(job{slot: k.slot, tries: k.tries + 1, stale: k.keys})
		}
	}
	return over, nil
}

func (s *stream) assignSlots(ctx context.Context, slots []int) error {
	if err := claimSlots(ctx, s.target, slots, s.to.self.id, s.atOnce); err != nil {
		return err
	}
	return setSlotState(ctx, s.Client, slots, "NODE", s.to.self.id)
}

// claimSlots makes a node the owner of slots that move to it. Redis sends every member 2 kB for each slot whose move
// ends, and takes a new epoch for the first. Therefore only the first and the last slot end with SETSLOT NODE; the
// others become STABLE before NODE, which sends nothing. The commands are one transaction: between STABLE and NODE a
// client would be redirected in a loop. If atOnce is false, each slot is claimed separately.
func claimSlots(ctx context.Context, at *goredis.Client, slots []int, id string, atOnce bool) error {
	if len(slots) == 0 {
		return nil
	}
	pipe := at.Pipeline()
	if atOnce {
		pipe = at.TxPipeline()
	}
	for i, n := range slots {
		if atOnce && 0 < i && i < len(slots)-1 {
			pipe.Do(ctx, "CLUSTER", "SETSLOT", n, "STABLE")
		}
		pipe.Do(ctx, "CLUSTER", "SETSLOT", n, "NODE", id)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("claiming slots: %w", err)
	}
	return nil
}

func setSlotState(ctx context.Context, at *goredis.Client, slots []int, args ...any) error {
	if len(slots) == 0 {
		return nil
	}
	pipe := at.Pipeline()
	for _, n := range slots {
		pipe.Do(ctx, append([]any{"CLUSTER", "SETSLOT", n}, args...)...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("setting slots to %v: %w", args[0], err)
	}
	return nil
}

const (
	// migrateKeys and maxMigrate bound one MIGRATE, in keys and in bytes.
	migrateKeys = 64
	maxMigrate  = 128 << 10
)

// migrateSlots moves slots by MIGRATE, which blocks the source for a round trip, with an equal pause after each call.
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

// migratePaced migrates keys, then pauses for as long as the call blocked the source.
func (s *stream) migratePaced(ctx context.Context, keys []string) error {
	s.one.Lock()
	defer s.one.Unlock()
	began := time.Now()
	if err := migrateTo(ctx, s.Client, s.to.member, keys, "REPLACE"); err != nil {
		return err
	}
	return linger.For(ctx, time.Since(began))
}

// readMigrateKeys returns keys of a slot for one MIGRATE, and their size in bytes.
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
		// MIGRATE skips keys that were deleted meanwhile.
		if err := values[i].Err(); err != nil && !isKeyGone(err) {
			return nil, 0, err
		}
		if n := len(key) + len(values[i].Val()); len(keys) == 0 || size+n <= maxMigrate {
			keys, size = append(keys, key), size+n
		}
	}
	return keys, size, nil
}

// isKeyGone reports whether an error means a missing key: for a moving slot, an ASK redirect.
func isKeyGone(err error) bool {
	_, ask := goredis.IsAskError(err)
	return ask || errors.Is(err, goredis.Nil)
}

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
