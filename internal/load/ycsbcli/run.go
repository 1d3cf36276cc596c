package ycsbcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"skerry/internal/base/advice"
	"skerry/internal/load"
)

// ErrNoSuccess is a drive of which no operation ended ok.
var ErrNoSuccess = errors.New("no operation succeeded")

// ErrWrongData is a read that returned something else than was written.
var ErrWrongData = errors.New("reads returned other data than was written")

// Run drives a database as the options say: YCSB's text, or JSON, on stdout once it has
// ended; warnings and status lines on stderr. What was measured is printed even where
// the error says that it is not as it should be.
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
		return errors.Join(fmt.Errorf("driving %s: %w", o.Database, runErr), logs.close())
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
			fmt.Fprintf(stderr, "verified: %d records are there (by %s)\n", v.Records, v.Method)
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

// checkOutcome says whether the drive did what was asked.
func checkOutcome(ctx context.Context, r load.Result, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("loading: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("stopped early: %w", ctx.Err())
	case r.OK == 0:
		err := ErrNoSuccess
		if len(r.Errors) > 0 {
			err = fmt.Errorf("%w: %s", err, r.Errors[0].Example)
		}
		return advice.With(err, "see that the database runs and that the properties say where (-p redis.host=...)")
	}
	if v := r.Operations["VERIFY"]; v != nil && v.Failed > 0 {
		return advice.With(fmt.Errorf("%w: %d of %d", ErrWrongData, v.Failed, v.Ended()), "load with dataintegrity=true first, with the same fieldcount and fieldlength")
	}
	return nil
}

func describeError(e load.ErrorCount) string {
	if e.Node != "" {
		return e.Class + " at " + e.Node
	}
	return e.Class
}
