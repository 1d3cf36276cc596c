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

// failedError is that of a run of which some trials failed.
func (r *run) failedError(failed, of int) error {
	return advice.With(fmt.Errorf("%d of %d %w", failed, of, ErrTrials), "%s", failureAdvice(r.writer.Summary().Trials, r.writer.Dir()))
}

// abortError is the end of a run of which so many trials failed in a row.
func (r *run) abortError(inARow int, last record.Trial) error {
	return advice.With(
		fmt.Errorf("%d %w in a row, the last one: %s", inARow, ErrTrials, last.Error), "%s",
		failureAdvice(r.writer.Summary().Trials, r.writer.Dir()),
	)
}

// failureAdvice says what to do about trials that failed. Those that fail again for the same reason are not worth another try.
func failureAdvice(trials []record.Trial, dir string) string {
	measured := func(t record.Trial) bool { return t.State == record.TrialOK }
	switch {
	case sameCause(trials):
		return fmt.Sprintf("all trials fail alike: mend the cause first; logs of the database are below %s/trials", dir)
	case !slices.ContainsFunc(trials, measured): // it may be what the experiment says, which --resume runs as it was
		return fmt.Sprintf(
			"logs of the database are below %s/trials; mend the cause, and where it was outside the experiment go on with: skerry run --resume %s",
			dir, dir,
		)
	}
	return "try them again with: skerry run --resume " + dir
}

// sameCause tells whether no trial measured, and several failed with one message.
func sameCause(trials []record.Trial) bool {
	for _, t := range trials {
		if t.State != record.TrialFailed || normalizeError(t.Error) != normalizeError(trials[0].Error) {
			return false
		}
	}
	return len(trials) > 1
}

// variableParts are what differs between messages of one cause: times, addresses, processes.
var variableParts = regexp.MustCompile(`[0-9][0-9.]*(ns|us|µs|ms|s|m|h)?`)

// normalizeError is the first line of an error without its figures.
func normalizeError(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return variableParts.ReplaceAllString(line, "0")
}

// retrySuspect runs suspect trials again that may be valid then, each as often as the experiment says.
// They come after all others and by themselves, when what disturbed this machine may have passed.
func (r *run) retrySuspect(ctx context.Context, lane *lane) error {
	for round := range r.Experiment.Retries {
		again := slices.DeleteFunc(r.writer.Summary().Trials, func(t record.Trial) bool { return !worthRetry(t) || len(t.Replaced) > round })
		for i, t := range again {
			at := slices.IndexFunc(r.writer.Run().Plan, func(p record.Planned) bool { return p.ID == t.ID })
			p := r.writer.Run().Plan[at]
			label := fmt.Sprintf("trial %d again, %d of %d that are suspect %s", t.ID, i+1, len(again), r.describe(p))
			x, err := r.runTrial(ctx, &attempt{planned: p, lane: lane, number: len(r.writer.Run().Plan)}, label)
			if err != nil {
				return err
			}
			r.report(fmt.Sprintf("trial %d again", t.ID), p, x)
			if x.State == record.TrialInterrupted {
				return advice.With(fmt.Errorf("interrupted while suspect trials were run again: %w", context.Cause(ctx)),
					"every trial has measured; go on with: skerry run --resume %s --suspect", r.writer.Dir())
			}
		}
	}
	return nil
}

// worthRetry tells whether a trial is suspect for reasons that may all be gone when it is run again:
// the machine was disturbed, or it was full of trials that ran at the same time.
func worthRetry(t record.Trial) bool {
	return t.State == record.TrialOK && t.Verdict.State == record.Suspect && len(t.Verdict.Kinds) > 0 &&
		!slices.ContainsFunc(t.Verdict.Kinds, func(k string) bool {
			return !verdict.Kind(k).MayPass() && (t.Beside == 0 || verdict.Kind(k) != verdict.HostCPU)
		})
}
