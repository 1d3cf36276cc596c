package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/linger"
)

// Verification is the result of checking a table after a load phase.
type Verification struct {
	// Method is "count" if the database counted, "read" if every record was read.
	Method string `json:"method"`
	// Records is the number of records found, Missing the number of missing ones.
	Records int64 `json:"records"`
	Missing int64 `json:"missing"`
	// MissingKeys lists the first missing keys.
	MissingKeys []string `json:"missing_keys,omitempty"`
}

// readAttempts is the number of reads of a record before an error ends the verification.
const readAttempts = 5

// Verify checks that every record of a load phase exists. If the client can count and the count is
// right, that is enough; otherwise Verify reads every record. Missing records are an error that
// wraps ErrIncomplete.
func Verify(ctx context.Context, spec Spec, open OpenClient) (Verification, error) {
	if err := spec.Validate(); err != nil {
		return Verification{}, err
	}
	spec = spec.withDefaults()
	first, err := open(ctx)
	if err != nil {
		return Verification{}, fmt.Errorf("verify the load: %w", err)
	}
	v, err := countRecords(ctx, spec, first)
	if err := errors.Join(err, first.Close()); err != nil || v.Method != "" {
		return v, err
	}
	return readAllRecords(ctx, spec, open)
}

func countRecords(ctx context.Context, spec Spec, c Client) (Verification, error) {
	counter, ok := c.(Counter)
	if !ok || spec.Workload.InsertCount != spec.Workload.RecordCount {
		return Verification{}, nil
	}
	n, err := counter.Count(ctx, spec.Table)
	if err != nil {
		return Verification{}, fmt.Errorf("count the records of %s: %w", spec.Table, err)
	}
	if n != spec.Workload.RecordCount {
		return Verification{}, nil // the table may hold other rows
	}
	return Verification{Method: "count", Records: n}, nil
}

func readAllRecords(ctx context.Context, spec Spec, open OpenClient) (Verification, error) {
	v := Verification{Method: "read"}
	total := spec.Workload.InsertCount
	var next atomic.Int64
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	startClients(ctx, group, int(min(int64(spec.Threads), total)), open, func(c Client) error {
		for n := next.Add(1) - 1; n < total; n = next.Add(1) - 1 {
			key := spec.Workload.Key(spec.Workload.InsertStart + n)
			exists, err := recordExists(ctx, spec, c, key)
			if err != nil {
				return fmt.Errorf("read %s: %w", key, err)
			}
			mu.Lock()
			v.add(key, exists)
			mu.Unlock()
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return v, fmt.Errorf("verify the load: %w", err)
	}
	if v.Missing > 0 {
		return v, fmt.Errorf("%w: %d of %d records are missing, the first %s", ErrIncomplete, v.Missing, total, v.MissingKeys[0])
	}
	return v, nil
}

func (v *Verification) add(key string, exists bool) {
	if exists {
		v.Records++
		return
	}
	v.Missing++
	if len(v.MissingKeys) < maxListed {
		v.MissingKeys = append(v.MissingKeys, key)
	}
}

func recordExists(ctx context.Context, spec Spec, c Client, key string) (bool, error) {
	err := retryRead(ctx, spec.Timeout, func(ctx context.Context) error {
		_, err := c.Read(ctx, spec.Table, key, nil, nil)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// retryRead calls read until it returns nil, ErrNotFound or ErrNotHeld. After readAttempts it
// returns the last error. Each attempt has its own timeout.
func retryRead(ctx context.Context, timeout time.Duration, read func(context.Context) error) error {
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, timeout)
		err := read(one)
		cancel()
		switch {
		case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrNotHeld):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case try == readAttempts:
			return err
		}
		if err := linger.For(ctx, firstBackoff<<try); err != nil {
			return err
		}
	}
}

func withClient(ctx context.Context, open OpenClient, work func(Client) error) error {
	c, err := open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(work(c), c.Close())
}

// startClients calls work on n goroutines of the group, each with a new client.
func startClients(ctx context.Context, group *errgroup.Group, n int, open OpenClient, work func(Client) error) {
	for range n {
		group.Go(func() error { return withClient(ctx, open, work) })
	}
}
