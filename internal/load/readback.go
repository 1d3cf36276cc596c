package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/linger"
	"skerry/internal/load/audit"
	"skerry/internal/machine/files"
)

// AuditResult is the result of an audit phase.
type AuditResult struct {
	audit.Header
	// Keys is the number of records that were read, Held the number that this copy holds.
	Keys int64 `json:"keys"`
	Held int64 `json:"held"`
	// Lost counts missing acknowledged writes, Stale those that were missing at first, Unexpected
	// values that no write explains, Unread records that could not be read.
	Lost       int64 `json:"lost"`
	Stale      int64 `json:"stale"`
	Unexpected int64 `json:"unexpected"`
	Unread     int64 `json:"unread"`
	// Findings lists the first maxFindings of them.
	Findings []Finding `json:"findings,omitempty"`
	// Reads are the reads of records with a history.
	Reads []audit.Operation `json:"reads,omitempty"`
	Took  time.Duration     `json:"took_ns"`
}

// Finding is a fault of a record.
type Finding struct {
	Kind   string `json:"kind"` // lost, stale, unexpected, unread
	Number int64  `json:"number"`
	Key    string `json:"key"`
	Field  string `json:"field,omitempty"` // "" for the whole record
	// Expected is the missing write. Version 0 is the load phase.
	Expected audit.Write `json:"expected"`
	Saw      string      `json:"saw"`
}

const (
	kindStale  = "stale"
	kindUnread = "unread"
)

const (
	maxFindings     = 10_000
	maxSuspects     = 200_000
	auditBatch      = 64
	firstRecheck    = 100 * time.Millisecond
	maxRecheckPause = time.Second
)

type suspect struct {
	record audit.Record
	faults []audit.Fault
	err    error // the record could not be read
	held   bool
	first  []audit.Fault // faults of the first read
}

type recordAuditor struct {
	spec    Spec
	file    *audit.File
	history *audit.History // decides which records are watched
	began   time.Time

	done, held atomic.Int64

	mu       sync.Mutex
	suspects []suspect   // guarded by mu
	result   AuditResult // guarded by mu
}

// auditRecords reads back every record of the load and run phases and judges it. It repeats the
// reads of faulty records until they are right or Settle has passed.
func auditRecords(ctx context.Context, spec Spec, open OpenClient, onSecond func(Interval)) (Result, error) {
	file, err := audit.Open(ctx, files.File{On: spec.Audit.system(), Path: spec.Audit.File})
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	b := &recordAuditor{spec: spec, file: file, began: time.Now(), result: AuditResult{Header: file.Header}}
	if spec.Audit.HistoryKeys > 0 {
		b.history = audit.NewHistory(popularRecords(spec.Workload, spec.Seed, spec.Audit.HistoryKeys))
	}
	stop := reportProgress(&b.done, onSecond)
	err = errors.Join(b.readAll(ctx, open), b.recheckSuspects(ctx, open))
	stop()
	if err != nil {
		return Result{}, fmt.Errorf("audit acknowledged writes: %w", err)
	}
	b.conclude()
	return Result{Spec: spec, Started: b.began, Duration: b.result.Took, Audit: &b.result, Cores: usableCores()}, nil
}

// reportProgress calls onSecond with the number of completed reads once a second, until stop is
// called.
func reportProgress(read *atomic.Int64, onSecond func(Interval)) (stop func()) {
	if onSecond == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var last int64
		for t := int64(0); ; t++ {
			select {
			case <-done:
				return
			case now := <-tick.C:
				n := read.Load()
				onSecond(Interval{T: t, Start: now.Add(-time.Second), Length: time.Second, Totals: Totals{Counts: Counts{OK: n - last}}})
				last = n
			}
		}
	})
	return func() { close(done); wait.Wait() }
}

func (b *recordAuditor) readAll(ctx context.Context, open OpenClient) error {
	batches := make(chan []audit.Record, b.spec.Threads)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(batches)
		return b.sendRecords(ctx, batches)
	})
	startClients(ctx, group, b.spec.Threads, open, func(c Client) error {
		var fields []Field
		for batch := range batches {
			for _, r := range batch {
				if err := b.firstRead(ctx, c, r, &fields); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return group.Wait()
}

func (b *recordAuditor) sendRecords(ctx context.Context, batches chan<- []audit.Record) error {
	for {
		batch, err := b.nextBatch()
		select {
		case batches <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (b *recordAuditor) nextBatch() ([]audit.Record, error) {
	batch := make([]audit.Record, 0, auditBatch)
	for len(batch) < auditBatch {
		r, err := b.file.Next()
		if err != nil {
			return batch, err
		}
		batch = append(batch, r)
	}
	return batch, nil
}

func (b *recordAuditor) firstRead(ctx context.Context, c Client, r audit.Record, fields *[]Field) error {
	s, err := b.readRecord(ctx, c, r, fields)
	if err != nil {
		return err
	}
	b.addSuspect(s)
	b.done.Add(1)
	if s.held {
		b.held.Add(1)
	}
	return nil
}

// readRecord reads and judges a record. It returns an error only if ctx ends.
func (b *recordAuditor) readRecord(ctx context.Context, c Client, r audit.Record, fields *[]Field) (suspect, error) {
	s := suspect{record: r}
	key := b.spec.Workload.Key(r.Number)
	err := retryRead(ctx, b.spec.Timeout, func(ctx context.Context) (err error) {
		*fields, err = c.Read(ctx, b.spec.Table, key, nil, (*fields)[:0])
		return err
	})
	switch {
	case err == nil:
		b.addHistoryRead(r.Number, *fields, nil)
		s.held = true
		s.faults = r.Judge(b.file.Names, *fields)
	case errors.Is(err, ErrNotHeld):
	case errors.Is(err, ErrNotFound):
		b.addHistoryRead(r.Number, nil, ErrNotFound)
		s.faults = r.JudgeMissing(len(b.file.Names))
	case ctx.Err() != nil:
		return s, ctx.Err()
	default:
		s.err = err
	}
	return s, nil
}

// addHistoryRead keeps a read of a watched record. In the history it follows all other operations.
func (b *recordAuditor) addHistoryRead(number int64, got []Field, err error) {
	if !b.history.Watches(number) {
		return
	}
	o := audit.Operation{Worker: -1, Number: number, Read: true}
	if o.SetRead(b.file.Names, got, err, ErrNotFound) {
		b.mu.Lock()
		b.result.Reads = append(b.result.Reads, o)
		b.mu.Unlock()
	}
}

func (b *recordAuditor) addSuspect(s suspect) {
	if s.err == nil && len(s.faults) == 0 {
		return
	}
	if s.first == nil {
		s.first = s.faults
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.suspects) >= maxSuspects {
		b.countFaults(s)
		return
	}
	b.suspects = append(b.suspects, s)
}

func (b *recordAuditor) recheckSuspects(ctx context.Context, open OpenClient) error {
	until := time.Now().Add(b.spec.Audit.Settle)
	for wait := firstRecheck; len(b.suspects) > 0 && time.Now().Before(until); wait = min(2*wait, maxRecheckPause) {
		if err := linger.For(ctx, min(wait, time.Until(until))); err != nil {
			return err
		}
		suspects := b.suspects
		b.suspects = nil
		if err := b.recheck(ctx, open, suspects); err != nil {
			return err
		}
	}
	return nil
}

func (b *recordAuditor) recheck(ctx context.Context, open OpenClient, suspects []suspect) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	startClients(ctx, group, min(b.spec.Threads, len(suspects)), open, func(c Client) error {
		var fields []Field
		for i := next.Add(1) - 1; i < int64(len(suspects)); i = next.Add(1) - 1 {
			s, err := b.readRecord(ctx, c, suspects[i].record, &fields)
			if err != nil {
				return err
			}
			s.first = suspects[i].first
			b.settleSuspect(s)
		}
		return nil
	})
	return group.Wait()
}

// settleSuspect processes a repeated read. A lost write that is there now was stale.
func (b *recordAuditor) settleSuspect(s suspect) {
	if s.err != nil || len(s.faults) > 0 {
		b.addSuspect(s)
		return
	}
	if b.spec.Audit.Replica {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range s.first {
		if f.Kind == audit.Lost {
			b.addFinding(kindStale, s.record, f)
			b.result.Stale++
		}
	}
}

func (b *recordAuditor) conclude() {
	for _, s := range b.suspects {
		b.countFaults(s)
	}
	r := &b.result
	r.Keys, r.Held, r.Took = b.done.Load(), b.held.Load(), time.Since(b.began)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Number, b.Number) })
}

// countFaults counts the faults of a record. The caller holds mu or runs alone.
func (b *recordAuditor) countFaults(s suspect) {
	if s.err != nil {
		b.result.Unread++
		b.addFinding(kindUnread, s.record, audit.Fault{Field: audit.AllFields, Saw: s.err.Error()})
		return
	}
	for _, f := range s.faults {
		switch {
		case f.Kind == audit.Unexpected:
			b.result.Unexpected++
			b.addFinding(string(f.Kind), s.record, f)
		case b.spec.Audit.Replica:
			b.result.Stale++
			b.addFinding(kindStale, s.record, f)
		default:
			b.result.Lost++
			b.addFinding(string(f.Kind), s.record, f)
		}
	}
}

func (b *recordAuditor) addFinding(kind string, r audit.Record, f audit.Fault) {
	if len(b.result.Findings) >= maxFindings {
		return
	}
	out := Finding{Kind: kind, Number: r.Number, Key: b.spec.Workload.Key(r.Number), Expected: f.Expected, Saw: f.Saw}
	if f.Field != audit.AllFields {
		out.Field = b.file.Names[f.Field]
	}
	b.result.Findings = append(b.result.Findings, out)
}
