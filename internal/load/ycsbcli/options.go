// Package ycsbcli is YCSB's command line on the load driver: a workload against any
// running cluster, without a lab.
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

// ErrOptions marks what the caller has to put right: nothing was started.
var ErrOptions = errors.New("bad options")

// optionsError is an ErrOptions in the words of its cause.
type optionsError struct{ error }

func (e optionsError) Unwrap() []error { return []error{ErrOptions, e.error} }

// Options are those of "skerry ycsb". Zero values leave a choice to the properties.
type Options struct {
	Phase    load.Phase
	Database string
	// ClientProperties are those that the database's clients read, "*" for any.
	ClientProperties []string
	Files            []string // property files, or the names of built-in workloads
	Set              []string // key=value, over the files'

	Threads int
	Target  float64
	Status  bool // a status line every few seconds

	Arrival     load.Arrival
	MaxInFlight int
	AfterStall  load.AfterStall
	Duration    time.Duration // in place of operationcount
	Warmup      time.Duration
	Timeout     time.Duration
	Seed        uint64

	HDR      string // folder for histogram logs
	JSON     bool   // a JSON object in place of YCSB's text
	Batch    int    // records a request of a load phase
	NoVerify bool   // believe a load phase without looking
}

// plan is what options come to.
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
	if err != nil { // to which a misspelt name may have led
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
		if spec.Target > 0 { // there are times at which operations are due
			s.Interval = ycsb.IntervalBoth
		}
	}
	return plan{p, s, spec, warnings}, nil
}

// readProperties puts all properties together, the last given strongest, and warns of those without effect.
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

// readFile reads a property file, or the built-in workload of that name where there is
// no such file: "workloada", and "workloads/workloada" as YCSB's users write it.
func readFile(name string) ([]ycsb.Entry, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if dir := filepath.Dir(name); dir == "." || dir == "workloads" {
			if entries, ok := ycsb.BuiltinEntries(filepath.Base(name)); ok {
				return entries, nil
			}
		}
		return nil, advice.With(fmt.Errorf("reading the workload: %w", err),
			"give a property file, or one of the built-in workloads: workload%s", strings.Join(ycsb.BuiltinNames(), ", workload"))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the workload: %w", err)
	}
	defer f.Close()
	entries, err := ycsb.ReadEntries(f)
	if err != nil {
		return nil, fmt.Errorf("reading the workload %s: %w", name, err)
	}
	return entries, nil
}
