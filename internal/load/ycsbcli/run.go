package ycsbcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"skerry/internal/base/advice"
	"skerry/internal/load"
	"skerry/internal/record"
)

var errNoSuccess = errors.New("no operation succeeded")

var errWrongData = errors.New("reads returned other data than was written")

// Run drives a database. It prints the result on stdout at the end, in YCSB's text or JSON, and
// warnings and status lines on stderr. It prints the result also if the drive failed.
func Run(ctx context.Context, o Options, open load.OpenDatabase, stdout, stderr io.Writer) (err error) {
	p, err := o.plan()
	for _, w := range p.warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	if err != nil {
		return err
	}
	opener, err := open(o.Database)
	if err != nil {
		return optionsError{err}
	}
	client := func(ctx context.Context) (load.Client, error) { return opener(ctx, p.properties) }

	logs, err := newHistogramLogs(o, p.settings)
	if err != nil {
		return err
	}
	release := warnConcurrent(stderr, o, p)
	defer func() { err = errors.Join(err, release()) }()
	status := newStatus(stderr, o.Status || p.settings.Status, p)
	var logErr error
	result, runErr := load.Run(ctx, p.spec, client, func(i load.Interval) {
		status.add(i)
		if i.T >= 0 && logErr == nil {
			logErr = logs.add(i)
		}
	})
	if runErr != nil && !errors.Is(runErr, load.ErrIncomplete) {
		return errors.Join(fmt.Errorf("drive %s: %w", o.Database, runErr), logs.close())
	}
	status.finish()
	for _, w := range result.Warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	for _, e := range result.Errors {
		fmt.Fprintf(stderr, "%d × %s %s: %s\n", e.Count, e.Operation, describeError(e), e.Example)
	}

	var verified *load.Verification
	if o.Phase == load.PhaseLoad && runErr == nil && !o.NoVerify {
		v, err := load.Verify(ctx, p.spec, client)
		verified, runErr = &v, err
		if err == nil {
			fmt.Fprintf(stderr, "verified: found %d records (by %s)\n", v.Records, v.Method)
		}
	}
	if o.JSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(summarise(o, result, verified))
	} else {
		err = result.Report(p.settings.Interval, p.settings.Percentiles).WriteText(stdout)
	}
	return errors.Join(checkOutcome(ctx, result, runErr), err, logErr, logs.close())
}

func checkOutcome(ctx context.Context, r load.Result, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("load: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("stopped early: %w", ctx.Err())
	case r.OK == 0:
		err := errNoSuccess
		if len(r.Errors) > 0 {
			err = fmt.Errorf("%w: %s", err, r.Errors[0].Example)
		}
		return advice.With(err, "check that the database runs, and that the properties give its address (-p redis.host=...)")
	}
	if v := r.Operations["VERIFY"]; v != nil && v.Failed > 0 {
		return advice.With(fmt.Errorf("%w: %d of %d", errWrongData, v.Failed, v.Ended()),
			"load with dataintegrity=true first, with the same fieldcount and fieldlength")
	}
	return nil
}

func describeError(e load.ErrorCount) string {
	if e.Node != "" {
		return e.Class + " at " + e.Node
	}
	return e.Class
}

// summary is the output of --json. Its parts are those of summary.json.
type summary struct {
	Phase      load.Phase                         `json:"phase"`
	Database   string                             `json:"database"`
	Seed       uint64                             `json:"seed"`
	Arrival    load.Arrival                       `json:"arrival"`
	AfterStall load.AfterStall                    `json:"after_stall"`
	Threads    int                                `json:"threads"`
	Target     float64                            `json:"target_ops_s"`
	Stopped    string                             `json:"stopped"`
	DurationS  float64                            `json:"duration_s"`
	WarmupS    float64                            `json:"warmup_s"`
	Throughput float64                            `json:"throughput_ops_s"`
	Goodput    float64                            `json:"goodput_ops_s"`
	Outcomes   record.Outcomes                    `json:"outcomes"`
	Retries    int64                              `json:"retries"`
	Errors     []record.ErrorCount                `json:"errors,omitempty"`
	Operations map[string]record.OperationSummary `json:"operations"`
	Returns    map[string]map[string]int64        `json:"returns"`
	ClientCPU  float64                            `json:"client_cpu_cores"`
	LateP99US  float64                            `json:"client_late_p99_us"`
	Warnings   []string                           `json:"warnings,omitempty"`
	// Keys is the key space of a zipfian workload that inserts.
	Keys *record.Keys `json:"keys,omitempty"`
	// Verified is set after a load phase.
	Verified *load.Verification `json:"verified,omitempty"`
	// Unacknowledged is the number of records that a load phase did not store.
	Unacknowledged     int64    `json:"unacknowledged,omitempty"`
	UnacknowledgedKeys []string `json:"unacknowledged_keys,omitempty"`
}

func summarise(o Options, r load.Result, v *load.Verification) summary {
	s := summary{
		Phase: r.Spec.Phase, Database: o.Database, Seed: r.Spec.Seed, Arrival: r.Spec.Arrival, AfterStall: r.Spec.AfterStall,
		Threads: r.Spec.Threads, Target: r.Spec.Target, Stopped: r.Stopped,
		DurationS: r.Duration.Seconds(), WarmupS: r.Warmup.Seconds(), Throughput: r.Throughput(), Goodput: r.Goodput(),
		Outcomes: record.Outcomes{OK: r.OK, Failed: r.Failed, Unknown: r.Unknown, Dropped: r.Dropped}, Retries: r.Retries,
		Operations: r.Summaries(), Returns: map[string]map[string]int64{},
		ClientCPU: r.ClientCPU(), LateP99US: micros(r.Late.Quantile(0.99)), Warnings: r.Warnings,
		Keys: r.Keys(), Verified: v, Unacknowledged: r.Unacknowledged, UnacknowledgedKeys: r.UnacknowledgedKeys,
	}
	for _, e := range r.Errors {
		s.Errors = append(s.Errors, record.ErrorCount{Operation: e.Operation, Class: e.Class, Node: e.Node, Count: e.Count, Example: e.Example})
	}
	for name, op := range r.Operations {
		s.Returns[name] = op.Returns
	}
	return s
}

func micros[T ~int64](ns T) float64 { return float64(ns) / 1e3 }
