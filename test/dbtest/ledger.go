package dbtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/load"
)

// Table is the benchmark's table.
const Table = "usertable"

const rowField = "field0"

// Ledger writes rows and records which writes the database acknowledged. A row has at most one writer at a time.
type Ledger struct {
	prefix string

	mu   sync.Mutex
	rows []*row
	acct WriteCounts
}

type row struct {
	key   string
	busy  bool
	acked int64 // newest acknowledged version, 0 if none
	tried int64 // newest version sent
}

// WriteCounts counts rows by outcome.
type WriteCounts struct {
	Writes  int64 `json:"writes"`  // acknowledged
	Failed  int64 `json:"failed"`  // not applied
	InDoubt int64 `json:"unknown"` // outcome unknown
	// Rows returns the minimum and the maximum number of rows that the table may contain.
	Rows  int64 `json:"rows"`
	Lost  int64 `json:"lost"`
	Stale int64 `json:"stale"`
	Late  int64 `json:"late"`
	// Examples are the keys of the first lost and stale rows.
	Examples []string `json:"examples,omitempty"`
	// Errors counts write errors by class.
	Errors map[string]int64 `json:"errors,omitempty"`
}

// NewLedger returns an empty ledger whose keys begin with prefix.
func NewLedger(prefix string) *Ledger {
	return &Ledger{prefix: prefix, acct: WriteCounts{Errors: make(map[string]int64)}}
}

const (
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// One of updateShare writes is an insert; the others are updates.
	updateShare = 4
	// maxExamples bounds WriteCounts.Examples.
	maxExamples = 10
)

// Write makes the n-th write of a writer: an insert or an update. The error is the client's.
func (l *Ledger) Write(ctx context.Context, c load.Client, n int) error {
	r, version := l.nextRow(n)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	value := []load.Field{{Name: rowField, Value: []byte(strconv.FormatInt(version, 10))}}
	var err error
	if version == 1 {
		err = c.Insert(ctx, Table, r.key, value)
	} else {
		err = c.Update(ctx, Table, r.key, value)
	}
	l.record(r, version, err)
	return err
}

func (l *Ledger) nextRow(n int) (*row, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n%updateShare != 0 && len(l.rows) > 0 {
		for try := range 8 {
			r := l.rows[(n*7919+try)%len(l.rows)]
			if !r.busy && r.acked > 0 {
				r.busy = true
				r.tried++
				return r, r.tried
			}
		}
	}
	// A leading hash spreads the keys over the servers, as in YCSB.
	i := len(l.rows)
	r := &row{key: fmt.Sprintf("user%s%d-%d", l.prefix, i*2654435761%1_000_003, i), busy: true, tried: 1}
	l.rows = append(l.rows, r)
	return r, 1
}

func (l *Ledger) record(r *row, version int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.busy = false
	var e *load.OpError
	switch {
	case err == nil:
		r.acked = version
		l.acct.Writes++
		return
	case errors.Is(err, load.ErrNotFound), errors.As(err, &e) && e.Outcome == load.NotDone:
		l.acct.Failed++
	default:
		l.acct.InDoubt++
	}
	class := "error"
	if e != nil {
		class = e.Class
	} else if errors.Is(err, load.ErrNotFound) {
		class = "not_found"
	}
	l.acct.Errors[class]++
}

// Rows returns the minimum and the maximum number of rows in the table.
func (l *Ledger) Rows() (least, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rows {
		if r.acked > 0 {
			least++
		}
	}
	return least, int64(len(l.rows))
}

const (
	// again is the time during which a missing row is read repeatedly before it counts as lost.
	again = 5 * time.Second
	// answerWithin is the time during which a read is repeated while the database returns errors.
	answerWithin = time.Minute
	// againPause is the pause between two attempts.
	againPause = 100 * time.Millisecond
)

// awaitFirst waits for the first row, so that no change of membership precedes the first write.
func (l *Ledger) awaitFirst(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no write was acknowledged within %v", within))
	defer cancel()
	for {
		if least, _ := l.Rows(); least > 0 {
			return nil
		}
		if err := linger.For(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// Check reads every acknowledged row back with the given number of clients. Writes must have ended.
func (l *Ledger) Check(ctx context.Context, open load.OpenClient, clients int) (WriteCounts, error) {
	l.mu.Lock()
	rows := make([]*row, 0, len(l.rows))
	for _, r := range l.rows {
		if r.acked > 0 {
			rows = append(rows, r)
		}
	}
	acct := l.acct
	l.mu.Unlock()
	acct.Rows, acct.Lost, acct.Stale, acct.Late, acct.Examples = int64(len(rows)), 0, 0, 0, nil

	var mu sync.Mutex
	book := func(r *row, f finding) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case f.missing:
			acct.Lost++
		case f.version < r.acked:
			acct.Stale++
		case f.late:
			acct.Late++
			return
		default:
			return
		}
		if len(acct.Examples) < maxExamples {
			acct.Examples = append(acct.Examples, r.key)
		}
	}
	errs := make([]error, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			c, err := open(ctx)
			if err != nil {
				errs[i] = fmt.Errorf("opening a client to check rows: %w", err)
				return
			}
			for n := i; n < len(rows) && err == nil; n += clients {
				var f finding
				if f, err = checkRow(ctx, c, rows[n]); err == nil {
					book(rows[n], f)
				}
			}
			errs[i] = errors.Join(err, c.Close())
		})
	}
	all.Wait()
	return acct, errors.Join(errs...)
}

type finding struct {
	missing bool
	late    bool
	version int64
}

func checkRow(ctx context.Context, c load.Client, r *row) (finding, error) {
	var f finding
	began := time.Now()
	for silent := began; ; f.late = true { // silent is the time of the last read without an answer
		version, err := readVersion(ctx, c, r.key)
		switch {
		case err == nil:
			f.missing, f.version = false, version
			if version >= r.acked {
				return f, nil
			}
		case errors.Is(err, load.ErrNotFound):
			f.missing = true
		}
		if err == nil || errors.Is(err, load.ErrNotFound) {
			if time.Since(silent) > again {
				return f, nil
			}
		} else if silent = time.Now(); silent.Sub(began) > answerWithin {
			return f, fmt.Errorf("reading %s back: %w", r.key, err)
		}
		if err := linger.For(ctx, againPause); err != nil {
			return f, err
		}
	}
}

func readVersion(ctx context.Context, c load.Client, key string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	fields, err := c.Read(ctx, Table, key, []string{rowField}, nil)
	if err != nil {
		return 0, err
	}
	if len(fields) != 1 || fields[0].Name != rowField {
		return 0, fmt.Errorf("the row has %d fields, want only %s", len(fields), rowField)
	}
	return strconv.ParseInt(string(fields[0].Value), 10, 64)
}

// Err returns an error that wraps ErrLost if rows were lost.
func (a WriteCounts) Err() error {
	if a.Lost == 0 && a.Stale == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d rows are missing and %d have an older value (%s)",
		ErrLost, a.Lost, a.Rows, a.Stale, strings.Join(a.Examples, ", "))
}
