package runner

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
)

func (r *run) failedError(failed, of int) error {
	return advice.With(fmt.Errorf("%d of %d %w", failed, of, ErrTrials), "%s", failureAdvice(r.writer.Summary().Trials, r.writer.Dir()))
}

func (r *run) abortError(inARow int, last record.Trial) error {
	return advice.With(
		fmt.Errorf("%d %w in a row; the last error: %s", inARow, ErrTrials, last.Error), "%s",
		failureAdvice(r.writer.Summary().Trials, r.writer.Dir()),
	)
}

// failureAdvice does not suggest repeating trials that fail for the same reason.
func failureAdvice(trials []record.Trial, dir string) string {
	measured := func(t record.Trial) bool { return t.State == record.TrialOK }
	switch {
	case sameCause(trials):
		return fmt.Sprintf("all trials failed for the same reason: fix it first; see the database logs in %s/trials", dir)
	case !slices.ContainsFunc(trials, measured): // it may be what the experiment says, which --resume runs as it was
		return fmt.Sprintf(
			"see the database logs in %s/trials; fix the cause and, if the experiment file is correct, resume with: skerry run --resume %s",
			dir, dir,
		)
	}
	return "retry them with: skerry run --resume " + dir
}

// sameCause reports whether several trials ran and all failed with the same message.
func sameCause(trials []record.Trial) bool {
	for _, t := range trials {
		if t.State != record.TrialFailed || normalizeError(t.Error) != normalizeError(trials[0].Error) {
			return false
		}
	}
	return len(trials) > 1
}

// variableParts match what differs between messages of one cause: times, addresses, process IDs.
var variableParts = regexp.MustCompile(`[0-9][0-9.]*(ns|us|µs|ms|s|m|h)?`)

func normalizeError(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return variableParts.ReplaceAllString(line, "0")
}

// retrySuspect repeats suspect trials that may become valid, up to the experiment's number of retries. They
// run last and alone, when a disturbance of this machine may have passed.
func (r *run) retrySuspect(ctx context.Context, lane *lane) error {
	for round := range r.Experiment.Retries {
		again := slices.DeleteFunc(r.writer.Summary().Trials, func(t record.Trial) bool { return !worthRetry(t) || len(t.Replaced) > round })
		for i, t := range again {
			at := slices.IndexFunc(r.writer.Run().Plan, func(p record.Planned) bool { return p.ID == t.ID })
			p := r.writer.Run().Plan[at]
			label := fmt.Sprintf("retry of trial %d, %d of %d suspect %s", t.ID, i+1, len(again), r.describe(p))
			x, err := r.runTrial(ctx, &attempt{planned: p, lane: lane, number: len(r.writer.Run().Plan)}, label)
			if err != nil {
				return err
			}
			r.report(fmt.Sprintf("retry of trial %d", t.ID), p, x)
			if x.State == record.TrialInterrupted {
				return advice.With(fmt.Errorf("interrupted during retries of suspect trials: %w", context.Cause(ctx)),
					"every trial has a result; resume with: skerry run --resume %s --suspect", r.writer.Dir())
			}
		}
	}
	return nil
}

// worthRetry reports whether a trial is suspect for temporary reasons only: a disturbed machine, or one
// that concurrent trials overloaded.
func worthRetry(t record.Trial) bool {
	return t.State == record.TrialOK && t.Verdict.State == record.Suspect && len(t.Verdict.Kinds) > 0 &&
		!slices.ContainsFunc(t.Verdict.Kinds, func(k string) bool {
			return !verdict.Kind(k).Transient() && (t.Concurrent == 0 || verdict.Kind(k) != verdict.HostCPU)
		})
}

// CountNoun returns a number with its noun: "1 task", "3 tasks".
func CountNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
