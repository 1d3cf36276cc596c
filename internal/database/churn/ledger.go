package churn

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

// Table is the benchmark's table, which rows are written to.
const Table = "usertable"

// rowField is the field that holds a row's version.
const rowField = "field0"

// Ledger writes rows and knows which writes a database acknowledged. A row has a
// version, which grows with each write; one writer at a time writes a row.
type Ledger struct {
	prefix string

	mu   sync.Mutex
	rows []*row
	acct Account
}

// row is one row's story.
type row struct {
	key   string
	busy  bool
	acked int64 // the newest version acknowledged, 0 when none was
	tried int64 // the newest version that was sent
}

// Account is what became of the rows.
type Account struct {
	Writes  int64 `json:"writes"`  // acknowledged
	Failed  int64 `json:"failed"`  // certainly not done
	InDoubt int64 `json:"unknown"` // nobody knows
	// Rows are those with an acknowledged write; Lost of them could not be read, Stale
	// held an older version than the acknowledged one, and Late were there only when
	// asked again.
	Rows  int64 `json:"rows"`
	Lost  int64 `json:"lost"`
	Stale int64 `json:"stale"`
	Late  int64 `json:"late"`
	// Examples are keys of lost and stale rows, the first ones.
	Examples []string `json:"examples,omitempty"`
	// Errors are the writes' errors by class.
	Errors map[string]int64 `json:"errors,omitempty"`
}

// NewLedger returns a ledger of no rows; their keys will begin with the prefix.
func NewLedger(prefix string) *Ledger {
	return &Ledger{prefix: prefix, acct: Account{Errors: make(map[string]int64)}}
}

const (
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// updateShare: of so many writes one inserts a row, the others update rows.
	updateShare = 4
	// maxExamples bounds the keys that an account lists.
	maxExamples = 10
)

// Write inserts a row or updates one, the n-th write of a writer; the error is what the
// client said.
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

// nextRow chooses a row that nobody is writing.
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
	// A hash in front spreads the keys over the servers, as YCSB's do.
	i := len(l.rows)
	r := &row{key: fmt.Sprintf("user%s%d-%d", l.prefix, i*2654435761%1_000_003, i), busy: true, tried: 1}
	l.rows = append(l.rows, r)
	return r, 1
}

// record books what became of a write.
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

// Rows is how many rows are there for certain, and how many at most.
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
	// again is how long a row that is missing is asked for before it counts as lost.
	again = 5 * time.Second
	// answerWithin is how long a row is asked for that the database does not answer for:
	// it may be settling after the last change.
	answerWithin = time.Minute
	// againPause is between two questions for it.
	againPause = 100 * time.Millisecond
)

// awaitFirst waits until a row is there: changes of membership can be over before the first
// write is.
func (l *Ledger) awaitFirst(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no write was acknowledged in %v", within))
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

// Check reads every acknowledged row back, with so many clients, and returns the
// account. Nobody may write meanwhile.
func (l *Ledger) Check(ctx context.Context, open load.OpenClient, clients int) (Account, error) {
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
				errs[i] = fmt.Errorf("opening a client to check rows with: %w", err)
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

// finding is what a row was found to be.
type finding struct {
	missing bool
	late    bool
	version int64
}

// checkRow reads a row until it is as it should be, or it is too late.
func checkRow(ctx context.Context, c load.Client, r *row) (finding, error) {
	var f finding
	began := time.Now()
	for silent := began; ; f.late = true { // silent is when it last did not answer
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
		return 0, fmt.Errorf("the row has %d fields, want %s alone", len(fields), rowField)
	}
	return strconv.ParseInt(string(fields[0].Value), 10, 64)
}

// Err says what was lost, nil when nothing was.
func (a Account) Err() error {
	if a.Lost == 0 && a.Stale == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d rows are gone and %d hold an older value (%s)", ErrLost, a.Lost, a.Rows, a.Stale, strings.Join(a.Examples, ", "))
}
