package loadbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// AuditCost is the cost of tracking every write by its version.
type AuditCost struct {
	Overhead []Overhead `json:"overhead"`
	// ReadBack is there where Redis is.
	ReadBack *ReadBack `json:"read_back,omitempty"`
}

// Overhead is the driver against a database that answers at once, with and without an
// audit in turns: operations per second of CPU time, medians.
type Overhead struct {
	Workload string  `json:"workload"`
	Threads  int     `json:"threads"`
	Without  float64 `json:"ops_per_cpu_s_without"`
	With     float64 `json:"ops_per_cpu_s_with"`
	// Share of the operations that the audit costs: 0.05 is 5 %.
	Share float64 `json:"share"`
}

// ReadBack is an audit of updates of single fields, spread evenly over as many records, on one
// Redis on loopback.
type ReadBack struct {
	Acknowledged int64   `json:"acknowledged_writes"`
	Records      int64   `json:"records"`
	Seconds      float64 `json:"read_back_s"`
	// RunPeak and AuditPeak are the most memory of the process while it drove and while
	// it read back; LedgerBytes is what lies on the disk between.
	RunPeak     int64 `json:"run_peak_bytes"`
	AuditPeak   int64 `json:"audit_peak_bytes"`
	LedgerBytes int64 `json:"ledger_bytes"`
	Wrong       int64 `json:"wrong"` // must be 0
}

const (
	overheadRounds  = 7
	overheadRuns    = 2_000_000
	readBackWrites  = 1_000_000
	readBackQuick   = 20_000
	readBackThreads = 64
)

func measureAudit(ctx context.Context, o Options) (a AuditCost, err error) {
	dir, err := os.MkdirTemp("", "skerry-bench-")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, c := range []struct {
		name    string
		threads int
		p       ycsb.Properties
	}{
		{"a", 1, nil}, {"a", 16, nil}, {"b", 1, nil}, {"c", 1, nil}, {"d", 1, nil}, {"f", 1, nil},
		{"a, all fields", 1, ycsb.Properties{"writeallfields": "true"}},
	} {
		x, err := measureOverhead(ctx, o, c.name, c.threads, c.p, filepath.Join(dir, "ledger"))
		if err != nil {
			return a, err
		}
		a.Overhead = append(a.Overhead, x)
	}
	if o.Server != "" && o.Open != nil {
		a.ReadBack, err = measureReadBack(ctx, o, dir)
	}
	return a, err
}

func measureOverhead(ctx context.Context, o Options, name string, threads int, change ycsb.Properties, file string) (Overhead, error) {
	x := Overhead{Workload: name, Threads: threads}
	n, rounds := overheadRuns, overheadRounds
	if o.Quick {
		n, rounds = quickRuns, 1
	}
	p, _ := ycsb.Builtin(name[:1])
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": "100000", "operationcount": strconv.Itoa(n)}).Merge(change))
	if err != nil {
		return x, err
	}
	rates := [2][]float64{}
	for round := range rounds {
		o.Progress(fmt.Sprintf("audit, workload %s, %d threads, round %d of %d", name, threads, round+1, rounds))
		for with := range rates {
			spec := load.Spec{Workload: w, Threads: threads, Seed: uint64(round)}
			if with == 1 {
				spec.Audit = &load.AuditSpec{File: file, HistoryKeys: 8}
			}
			db := new(load.NullDatabase)
			got, err := load.Run(ctx, spec, func(ctx context.Context) (load.Client, error) { return db.Open(ctx, nil) }, nil)
			if err != nil {
				return x, fmt.Errorf("driving the null database: %w", err)
			}
			rates[with] = append(rates[with], float64(got.OK)/got.CPU.Seconds())
		}
	}
	x.Without, x.With = stats.Median(rates[0]), stats.Median(rates[1])
	x.Share = 1 - x.With/x.Without
	return x, nil
}

func measureReadBack(ctx context.Context, o Options, dir string) (_ *ReadBack, err error) {
	server, err := startRedis(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	n := readBackWrites
	if o.Quick {
		n = readBackQuick
	}
	count := strconv.Itoa(n)
	w, _, err := ycsb.Parse(ycsb.Properties{
		"recordcount": count, "operationcount": count, "fieldlength": "16",
		"requestdistribution": "uniform", "readproportion": "0", "updateproportion": "1",
	})
	if err != nil {
		return nil, err
	}
	properties := map[string]string{"redis.host": "127.0.0.1", "redis.port": strconv.Itoa(server.port)}
	open := func(ctx context.Context) (load.Client, error) { return o.Open(ctx, properties) }
	spec := load.Spec{Phase: load.PhaseLoad, Workload: w, Threads: readBackThreads, Seed: 1,
		Audit: &load.AuditSpec{File: filepath.Join(dir, "ledger"), HistoryKeys: 8, Settle: time.Second}}
	r := &ReadBack{Records: int64(n)}
	for _, phase := range []load.Phase{load.PhaseLoad, load.PhaseRun, load.PhaseAudit} {
		o.Progress(fmt.Sprintf("audit of %d writes on one Redis: %s", n, phase))
		if err := resetPeak(); err != nil {
			return nil, err
		}
		spec.Phase = phase
		got, err := load.Run(ctx, spec, open, nil)
		if err != nil {
			return nil, fmt.Errorf("auditing one Redis: %w", err)
		}
		switch phase {
		case load.PhaseRun:
			r.Acknowledged, r.RunPeak = got.Audited.Acknowledged, readPeakMemory()
		case load.PhaseAudit:
			a := got.Audit
			r.AuditPeak, r.Seconds, r.Wrong = readPeakMemory(), a.Took.Seconds(), a.Lost+a.Stale+a.Unexpected+a.Unread
		}
	}
	if st, err := os.Stat(spec.Audit.File); err == nil {
		r.LedgerBytes = st.Size()
	}
	return r, nil
}

// resetPeak makes the kernel forget the most memory that this process had, see proc(5).
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// readPeakMemory is the most resident memory since resetPeak, 0 where the kernel does not tell.
func readPeakMemory() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64) // it is a number
			return kb << 10
		}
	}
	return 0
}
