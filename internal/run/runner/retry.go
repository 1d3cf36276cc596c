package runner

import (
	"context"
	"fmt"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
)

// retry runs suspect trials again that may be valid then, each as often as the experiment says.
// They come after all others and by themselves, when what disturbed this machine may have passed.
func (r *run) retry(ctx context.Context, lane *lane) error {
	for round := range r.Experiment.Retries {
		again := slices.DeleteFunc(r.writer.Summary().Trials, func(t record.Trial) bool { return !mayPass(t) || len(t.Replaced) > round })
		for i, t := range again {
			at := slices.IndexFunc(r.writer.Run().Plan, func(p record.Planned) bool { return p.ID == t.ID })
			p := r.writer.Run().Plan[at]
			label := fmt.Sprintf("trial %d again, %d of %d that are suspect %s", t.ID, i+1, len(again), r.describe(p))
			x, err := r.trial(ctx, &attempt{planned: p, lane: lane, number: len(r.writer.Run().Plan)}, label)
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

// mayPass tells whether a trial is suspect for reasons that may all be gone when it is run again:
// the machine was disturbed, or it was full of trials that ran at the same time.
func mayPass(t record.Trial) bool {
	return t.State == record.TrialOK && t.Verdict.State == record.Suspect && len(t.Verdict.Kinds) > 0 &&
		!slices.ContainsFunc(t.Verdict.Kinds, func(k string) bool {
			return !verdict.Kind(k).MayPass() && (t.Beside == 0 || verdict.Kind(k) != verdict.HostCPU)
		})
}
