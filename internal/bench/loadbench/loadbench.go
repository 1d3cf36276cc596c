// Package loadbench measures what the load driver costs: operations per CPU-second
// against a database that costs nothing, and against one Redis beside YCSB itself.
package loadbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"skerry/internal/load"
)

// ErrPart is a part that there is not.
var ErrPart = errors.New("no such part of the benchmark")

// Parts of the benchmark.
const (
	PartNull  = "null"
	PartRedis = "redis"
	PartAudit = "audit"
)

// Options of the benchmark. Zero values measure the null database only.
type Options struct {
	Only     []string // parts; default all that can be measured
	Quick    bool     // fewer operations: a look, no figure to quote
	Progress func(what string)

	// Exe is the skerry program and Server the redis-server of part redis.
	Exe    string
	Server string
	Env    []string // that Server needs
	// YCSB is the folder of a built bench/ycsb-java (its target), "" to leave YCSB out.
	YCSB string
	// Open opens a client of Redis for part audit.
	Open func(ctx context.Context, properties map[string]string) (load.Client, error)
}

// Result of the benchmark.
type Result struct {
	Schema string       `json:"schema"`
	Cores  int          `json:"cores"`
	Quick  bool         `json:"quick"`
	Null   []Null       `json:"null,omitempty"`
	Redis  []Comparison `json:"redis,omitempty"`
	Audit  *Audit       `json:"audit,omitempty"`
}

const schema = "skerry/bench-load/v1"

// Run measures.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, p := range o.Only {
		if p != PartNull && p != PartRedis && p != PartAudit {
			return Result{}, fmt.Errorf("%w: %q (there are %s, %s, %s)", ErrPart, p, PartNull, PartRedis, PartAudit)
		}
	}
	wanted := func(p string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, p) }
	r := Result{Schema: schema, Cores: runtime.NumCPU(), Quick: o.Quick}
	var err error
	if wanted(PartNull) {
		if r.Null, err = measureNull(ctx, o); err != nil {
			return r, err
		}
	}
	if wanted(PartRedis) && (o.Server != "" || len(o.Only) > 0) {
		if r.Redis, err = compare(ctx, o); err != nil {
			return r, err
		}
	}
	if wanted(PartAudit) {
		a, err := measureAudit(ctx, o)
		if err != nil {
			return r, err
		}
		r.Audit = &a
	}
	return r, nil
}
