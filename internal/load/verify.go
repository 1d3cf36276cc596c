package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/linger"
)

// Verification is what a table was found to hold after a load phase.
type Verification struct {
	// Method is "count" where the database counted, "read" where every record was
	// read back.
	Method string `json:"method"`
	// Records that are there, of those that should be.
	Records int64 `json:"records"`
	Missing int64 `json:"missing"`
	// MissingKeys lists the first.
	MissingKeys []string `json:"missing_keys,omitempty"`
}

// readAttempts is how often a record is read before an error, other than that it is not
// there, ends a verification.
const readAttempts = 5

// Verify checks that every record of a load phase is there. A client that can count is
// asked first: it is believed where it counts as many records as there should be.
// Otherwise every record is read. What is missing is an error that wraps ErrIncomplete.
func Verify(ctx context.Context, spec Spec, open OpenClient) (Verification, error) {
	if err := spec.Validate(); err != nil {
		return Verification{}, err
	}
	spec = spec.withDefaults()
	first, err := open(ctx)
	if err != nil {
		return Verification{}, fmt.Errorf("verifying the load: %w", err)
	}
	v, err := countRecords(ctx, spec, first)
	if err := errors.Join(err, first.Close()); err != nil || v.Method != "" {
		return v, err
	}
	return readAllRecords(ctx, spec, open)
}

// countRecords asks a client; an empty method says that it cannot tell.
func countRecords(ctx context.Context, spec Spec, c Client) (Verification, error) {
	counter, ok := c.(Counter)
	if !ok || spec.Workload.InsertCount != spec.Workload.RecordCount {
		return Verification{}, nil
	}
	n, err := counter.Count(ctx, spec.Table)
	if err != nil {
		return Verification{}, fmt.Errorf("counting the records of %s: %w", spec.Table, err)
	}
	if n != spec.Workload.RecordCount {
		return Verification{}, nil // other rows may be there too
	}
	return Verification{Method: "count", Records: n}, nil
}

// readAllRecords reads every record.
func readAllRecords(ctx context.Context, spec Spec, open OpenClient) (Verification, error) {
	v := Verification{Method: "read"}
	var next atomic.Int64
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for range min(int64(spec.Threads), spec.Workload.InsertCount) {
		group.Go(func() (err error) {
			c, err := open(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, c.Close()) }()
			for {
				n := next.Add(1) - 1
				if n >= spec.Workload.InsertCount {
					return nil
				}
				key := spec.Workload.Key(spec.Workload.InsertStart + n)
				there, err := recordExists(ctx, spec, c, key)
				if err != nil {
					return fmt.Errorf("reading %s back: %w", key, err)
				}
				mu.Lock()
				if there {
					v.Records++
				} else {
					v.Missing++
					if len(v.MissingKeys) < maxListed {
						v.MissingKeys = append(v.MissingKeys, key)
					}
				}
				mu.Unlock()
			}
		})
	}
	if err := group.Wait(); err != nil {
		return v, fmt.Errorf("verifying the load: %w", err)
	}
	if v.Missing > 0 {
		return v, fmt.Errorf("%w: %d of %d records are not there, the first %s", ErrIncomplete, v.Missing, spec.Workload.InsertCount, v.MissingKeys[0])
	}
	return v, nil
}

// recordExists tells whether a record can be read.
func recordExists(ctx context.Context, spec Spec, c Client, key string) (bool, error) {
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, spec.Timeout)
		_, err := c.Read(one, spec.Table, key, nil, nil)
		cancel()
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrNotFound):
			return false, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case try == readAttempts:
			return false, err
		}
		if err := linger.For(ctx, firstBackoff<<try); err != nil {
			return false, err
		}
	}
}
