package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/record"
	"skerry/internal/run/calibration"
)

// Work measures those trials of a run that it is told, wherever the run directory or a copy of its
// plan can be seen, beside others who do the same: each trial has one result, whoever was first.
// Those that have one already are left as they are; where Config.Suspect is set, only if it is valid.
func Work(ctx context.Context, dir string, c Config, only []int) (err error) {
	r := &run{Config: c}
	work, err := record.OpenWork(dir)
	if err != nil {
		return err
	}
	r.home, r.note = work, func(string, string, []string) error { return nil }
	plan := work.Run().Plan
	if err := errors.Join(samePlan(plan, planned(c.Experiment)), sameFiles(work.Run().Files, c.Experiment.Digests())); err != nil {
		return err
	}
	left, err := r.missing(work, only)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.leave()) }()
	was := work.Run().Versions
	if err := errors.Join(r.sameDatabases(was.Databases), r.sameProgram(was)); err != nil {
		return err
	}
	if err := r.calibrate(ctx); err != nil {
		return err
	}
	lane := &lane{progress: r.Progress}
	err = errors.Join(r.each(ctx, lane, left), lane.kept.Close(context.WithoutCancel(ctx)))
	r.Progress.Done()
	return err
}

// sameProgram refuses to measure with another version than the run was made with. Another build of the same
// one measures, and the trial's record has its sum.
func (r *run) sameProgram(was record.Versions) (err error) {
	if was.Skerry != r.Version {
		return advice.With(fmt.Errorf("the run was made with skerry %s, this is %s", was.Skerry, r.Version), "install that version here")
	}
	r.place.Program, err = record.ThisProgram()
	return err
}

// calibrate measures this machine, for the records of the trials that follow.
func (r *run) calibrate(ctx context.Context) error {
	r.Progress.Livef("calibrating this machine")
	c, err := calibration.Run(ctx)
	r.place.Calibration = &c
	return err
}

// missing are those of the trials that have no result yet, in the order of the plan.
func (r *run) missing(work *record.Work, only []int) ([]record.Planned, error) {
	var left []record.Planned
	found := 0
	for _, p := range work.Run().Plan {
		if !slices.Contains(only, p.ID) {
			continue
		}
		found++
		t, err := work.Result(p.ID)
		if err != nil {
			return nil, err
		}
		if t != nil && t.State == record.TrialOK && !(r.Suspect && t.Verdict.State == record.Suspect) {
			r.Progress.Linef("trial %d has its result already", p.ID)
			continue
		}
		left = append(left, p)
	}
	if found < len(only) {
		return nil, advice.With(fmt.Errorf("%w: the plan has %d trials, and not all of those that are asked for", record.ErrNoTrial, len(work.Run().Plan)),
			"the plan stands in run.json")
	}
	return left, nil
}

// each measures trials one after another. One that failed does not end the others.
func (r *run) each(ctx context.Context, lane *lane, left []record.Planned) error {
	failed := 0
	for _, p := range left {
		which := fmt.Sprintf("trial %d", p.ID)
		t, err := r.trial(ctx, &attempt{planned: p, lane: lane}, which+" "+r.describe(p))
		if err != nil {
			return err
		}
		r.report(which, p, t)
		switch t.State {
		case record.TrialInterrupted:
			return fmt.Errorf("interrupted in trial %d: %w", p.ID, context.Cause(ctx))
		case record.TrialFailed:
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d %w", failed, len(left), ErrTrials)
	}
	return nil
}
