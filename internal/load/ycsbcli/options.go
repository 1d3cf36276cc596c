// Package ycsbcli implements YCSB's command line on the load driver: a workload against any running
// cluster, without a lab.
package ycsbcli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// ErrOptions marks invalid options. Nothing was started.
var ErrOptions = errors.New("invalid options")

type optionsError struct{ error }

func (e optionsError) Unwrap() []error { return []error{ErrOptions, e.error} }

// Options are those of "skerry ycsb". Zero values defer to the properties.
type Options struct {
	Phase    load.Phase
	Database string
	// ClientProperties are the properties of the database's clients; "*" accepts any.
	ClientProperties []string
	Files            []string // property files, or names of built-in workloads
	Set              []string // key=value, overriding files

	Threads int
	Target  float64
	Status  bool // print status lines

	Arrival     load.Arrival
	MaxInFlight int
	AfterStall  load.AfterStall
	Duration    time.Duration // replaces operationcount
	Warmup      time.Duration
	Timeout     time.Duration
	Seed        uint64

	HDR      string // folder for histogram logs
	JSON     bool   // print JSON instead of YCSB's text
	Batch    int    // records per request of a load phase
	NoVerify bool   // do not verify a load phase
}

type plan struct {
	properties ycsb.Properties
	settings   ycsb.Settings
	spec       load.Spec
	warnings   []string
}

func (o Options) plan() (plan, error) {
	p, warnings, err := o.readProperties()
	if err != nil {
		return plan{}, err
	}
	w, more, err := ycsb.Parse(p)
	warnings = append(warnings, more...)
	if err != nil { // a misspelt name can be the cause, so keep the warnings
		return plan{warnings: warnings}, optionsError{err}
	}
	s, err := ycsb.ParseSettings(p)
	if err != nil {
		return plan{}, optionsError{err}
	}
	spec := load.Spec{
		Phase: o.Phase, Workload: w, Arrival: o.Arrival, Threads: s.Threads, Target: s.Target,
		MaxInFlight: o.MaxInFlight, AfterStall: o.AfterStall, Warmup: o.Warmup, Timeout: o.Timeout, Batch: o.Batch, Seed: o.Seed,
		Operations: w.OperationCount, Duration: s.MaxExecutionTime,
	}
	if o.Threads != 0 {
		spec.Threads = o.Threads
	}
	if o.Target != 0 {
		spec.Target = o.Target
	}
	if o.Duration > 0 {
		spec.Operations, spec.Duration = 0, o.Duration
	}
	if err := spec.Validate(); err != nil {
		return plan{}, optionsError{err}
	}
	if s.Interval == "" {
		s.Interval = ycsb.IntervalOp
		if spec.Target > 0 { // operations have due times
			s.Interval = ycsb.IntervalBoth
		}
	}
	return plan{p, s, spec, warnings}, nil
}

// readProperties merges all properties, the last ones taking precedence, and warns of those without
// effect.
func (o Options) readProperties() (p ycsb.Properties, warnings []string, err error) {
	p = ycsb.Properties{}
	add := func(place, name, value, why string) {
		if p[name] = value; why == "" {
			why = ycsb.UnusedReason(name, value, o.ClientProperties)
		}
		if why != "" {
			warnings = append(warnings, fmt.Sprintf("%s%s=%s is not used: %s", place, name, value, why))
		}
	}
	for _, name := range o.Files {
		entries, err := readFile(name)
		if err != nil {
			return nil, nil, optionsError{err}
		}
		for _, e := range entries {
			add(fmt.Sprintf("%s:%d: ", name, e.Line), e.Name, e.Value, e.OverrideReason())
		}
	}
	for _, kv := range o.Set {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || strings.TrimSpace(k) == "" {
			return nil, nil, advice.With(optionsError{fmt.Errorf("-p %s is not a property", kv)}, "write -p key=value")
		}
		add("-p ", strings.TrimSpace(k), v, "")
	}
	return p, warnings, nil
}

// readFile reads a property file. If there is no such file, it reads the built-in workload of that
// name: "workloada", or "workloads/workloada" as in YCSB.
func readFile(name string) ([]ycsb.Entry, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if dir := filepath.Dir(name); dir == "." || dir == "workloads" {
			if entries, ok := ycsb.BuiltinEntries(filepath.Base(name)); ok {
				return entries, nil
			}
		}
		return nil, advice.With(fmt.Errorf("read the workload: %w", err),
			"give a property file, or one of the built-in workloads: workload%s", strings.Join(ycsb.BuiltinNames(), ", workload"))
	}
	if err != nil {
		return nil, fmt.Errorf("read the workload: %w", err)
	}
	defer f.Close()
	entries, err := ycsb.ReadEntries(f)
	if err != nil {
		return nil, fmt.Errorf("read the workload %s: %w", name, err)
	}
	return entries, nil
}
