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

// AuditResult is what an audit phase found.
type AuditResult struct {
	audit.Header
	// Keys is how many records were asked for, Held how many of them this copy holds.
	Keys int64 `json:"keys"`
	Held int64 `json:"held"`
	// Lost counts acknowledged writes that are not there, Stale those that were not at
	// first, Unexpected values that nobody wrote, Unread records that could not be read.
	Lost       int64 `json:"lost"`
	Stale      int64 `json:"stale"`
	Unexpected int64 `json:"unexpected"`
	Unread     int64 `json:"unread"`
	// Findings are the first of them.
	Findings []Finding `json:"findings,omitempty"`
	// Reads are those of the records whose history is kept.
	Reads []audit.Operation `json:"reads,omitempty"`
	Took  time.Duration     `json:"took_ns"`
}

// Finding is one thing that is wrong with a record.
type Finding struct {
	Kind   string `json:"kind"` // lost, stale, unexpected, unread
	Number int64  `json:"number"`
	Key    string `json:"key"`
	Field  string `json:"field,omitempty"` // "" for the whole record
	// Expected is the write that should be there; its version is 0 where that is the load's.
	Expected audit.Write `json:"expected"`
	Saw      string      `json:"saw"`
}

// Kinds of findings beside those of package audit.
const (
	kindStale  = "stale"
	kindUnread = "unread"
)

const (
	// MaxFindings bounds what is listed; all are counted.
	MaxFindings = 10_000
	// maxSuspects bounds the records that are looked at again.
	maxSuspects = 200_000
	// batch is how many records a reader takes at once.
	auditBatch = 64
	// firstLook and longestLook are the pauses between looks at what seems wrong.
	firstRecheck    = 100 * time.Millisecond
	maxRecheckPause = time.Second
)

// suspect is a record that something is wrong with.
type suspect struct {
	record audit.Record
	faults []audit.Fault
	err    error // it could not be read
	held   bool
	first  []audit.Fault // at the first look
}

// recordAuditor is an audit phase under way.
type recordAuditor struct {
	spec    Spec
	file    *audit.File
	history *audit.History // to tell which records are watched
	began   time.Time

	done, held atomic.Int64

	mu       sync.Mutex
	suspects []suspect   // guarded by mu
	result   AuditResult // guarded by mu
}

// auditRecords reads back every record that a run phase or its load wrote, judges it, and looks
// again at what seems wrong until it is right or has had its time.
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
		return Result{}, fmt.Errorf("reading acknowledged writes back: %w", err)
	}
	b.conclude()
	return Result{Spec: spec, Started: b.began, Duration: b.result.Took, Audit: &b.result, Cores: usableCores()}, nil
}

// reportProgress reports how many records were read, once a second, until it is stopped.
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

// readAll reads every record of the file once.
func (b *recordAuditor) readAll(ctx context.Context, open OpenClient) error {
	records := make(chan []audit.Record, b.spec.Threads)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(records)
		for {
			list := make([]audit.Record, 0, auditBatch)
			var err error
			for len(list) < auditBatch && err == nil {
				var r audit.Record
				if r, err = b.file.Next(); err == nil {
					list = append(list, r)
				}
			}
			select {
			case records <- list:
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
	})
	for range b.spec.Threads {
		group.Go(func() error {
			return withClient(ctx, open, func(c Client) error {
				var fields []Field
				for list := range records {
					for _, r := range list {
						s, err := b.readRecord(ctx, c, r, &fields)
						if err != nil {
							return err
						}
						b.addSuspect(s)
						b.done.Add(1)
						if s.held {
							b.held.Add(1)
						}
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// withClient opens a client for work.
func withClient(ctx context.Context, open OpenClient, work func(Client) error) error {
	c, err := open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(work(c), c.Close())
}

// readRecord reads a record and judges it. An error is the end of ctx.
func (b *recordAuditor) readRecord(ctx context.Context, c Client, r audit.Record, fields *[]Field) (suspect, error) {
	s := suspect{record: r}
	key := b.spec.Workload.Key(r.Number)
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, b.spec.Timeout)
		got, err := c.Read(one, b.spec.Table, key, nil, (*fields)[:0])
		cancel()
		*fields = got
		switch {
		case err == nil:
			b.addHistoryRead(r.Number, got, nil)
			s.held = true
			s.faults = r.Judge(b.file.Names, got)
			return s, nil
		case errors.Is(err, ErrNotHeld):
			return s, nil
		case errors.Is(err, ErrNotFound):
			b.addHistoryRead(r.Number, nil, ErrNotFound)
			s.faults = r.JudgeMissing(len(b.file.Names))
			return s, nil
		case ctx.Err() != nil:
			return s, ctx.Err()
		case try == readAttempts:
			s.err = err
			return s, nil
		}
		if err := linger.For(ctx, firstBackoff<<try); err != nil {
			return s, err
		}
	}
}

// addHistoryRead keeps a read of a record whose history is kept: it comes after everything else.
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

// addSuspect keeps a record that something is wrong with.
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

// recheckSuspects looks at what seems wrong until nothing does, or its time is over.
func (b *recordAuditor) recheckSuspects(ctx context.Context, open OpenClient) error {
	until := time.Now().Add(b.spec.Audit.Settle)
	for wait := firstRecheck; len(b.suspects) > 0 && time.Now().Before(until); wait = min(2*wait, maxRecheckPause) {
		if err := linger.For(ctx, min(wait, time.Until(until))); err != nil {
			return err
		}
		before := b.suspects
		b.suspects = nil
		var next atomic.Int64
		group, ctx := errgroup.WithContext(ctx)
		for range min(b.spec.Threads, len(before)) {
			group.Go(func() error {
				return withClient(ctx, open, func(c Client) error {
					var fields []Field
					for {
						i := next.Add(1) - 1
						if i >= int64(len(before)) {
							return nil
						}
						s, err := b.readRecord(ctx, c, before[i].record, &fields)
						if err != nil {
							return err
						}
						s.first = before[i].first
						b.settleSuspect(s)
					}
				})
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// settleSuspect takes a second look: what was older and is right now was stale.
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

// conclude counts what is wrong in the end.
func (b *recordAuditor) conclude() {
	for _, s := range b.suspects {
		b.countFaults(s)
	}
	r := &b.result
	r.Keys, r.Held, r.Took = b.done.Load(), b.held.Load(), time.Since(b.began)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Number, b.Number) })
}

// countFaults counts what is wrong with a record. Its caller holds mu, or is alone.
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
	if len(b.result.Findings) >= MaxFindings {
		return
	}
	out := Finding{Kind: kind, Number: r.Number, Key: b.spec.Workload.Key(r.Number), Expected: f.Expected, Saw: f.Saw}
	if f.Field != audit.AllFields {
		out.Field = b.file.Names[f.Field]
	}
	b.result.Findings = append(b.result.Findings, out)
}
