// Package dispatch measures the trials of a run on an executor: it submits tasks, polls them, collects
// their results and resubmits tasks that ended without results.
//
// It is the only writer of the run directory. The directory always holds the results and submissions so
// far, so that another process can resume the run, even after a kill.
package dispatch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/record"
	"skerry/internal/run/bundle"
	"skerry/internal/run/executor"
	"skerry/internal/run/live"
	"skerry/internal/run/runner"
)

// Config configures a dispatched run.
type Config struct {
	runner.Config
	// On names the executor; a resumed run uses its own.
	On      string
	Options Options
	// Cancel is called after an interruption and reports whether to cancel the submitted tasks. nil leaves
	// them running.
	Cancel func() bool

	pace *pace         // nil for the default
	beat time.Duration // of the claim, 0 for the default
}

type dispatcher struct {
	Config
	remote   *runner.RemoteRun
	writer   *record.Writer
	executor executor.Executor
	limits   executor.Capacity
	feed     *live.Feed
	dir, cwd string // absolute paths

	state   State
	saved   string        // state as last written
	queue   []record.Task // not submitted
	open    map[int]*submittedTask
	byTrial map[int]*submittedTask // values of open, by trial
	tries   map[int]int            // submissions of a task by this process
	// firstSubmitted is when this process first submitted each task; reported are the warnings so far.
	firstSubmitted map[int]time.Time
	reported       map[string]bool
	health         machineHealth
	rerun          bool  // suspect trials are measured again
	lost           []int // tasks that were given up
	begun          time.Time
	tasks          int          // in the whole plan
	done           map[int]bool // trials that have a result
	measured       int          // results collected by this process, by outcome
	failed         int
}

type submittedTask struct {
	task       record.Task
	number     int // of its submission
	status     executor.Status
	since      time.Time // when it was first seen running
	finalPolls int       // polls that found it final without all results
	results    map[int]bool
}

// Run measures a new run. It returns the run's directory, as runner.Run does.
func Run(ctx context.Context, c Config) (string, error) {
	s, err := newDispatcher(c)
	if err != nil {
		return "", err
	}
	if s.limits, err = s.executor.Check(ctx); err == nil {
		s.remote, err = runner.CreateRemote(c.Config)
	}
	if err != nil {
		return "", errors.Join(err, s.executor.Close())
	}
	err = s.run(ctx)
	return s.writer.Dir(), err
}

// Resume continues a run: tasks that the executor still has stay there, the others are submitted. The error
// is ErrNoExecutor if the run does not use one.
func Resume(ctx context.Context, dir string, c Config) error {
	was, err := ReadState(dir)
	if err != nil {
		return err
	}
	c.On, c.Options = was.On, was.Options
	s, err := newDispatcher(c)
	if err != nil {
		return err
	}
	s.state = was
	s.limits, err = s.executor.Check(ctx)
	if err == nil {
		err = s.findPrinted(ctx)
	}
	if err == nil {
		err = checkVacant(ctx, dir, s.beat, func(o claimOwner) {
			c.Progress.Linef("note: process %d on %s controls or controlled this run; checking whether it is alive", o.Process, o.Host)
		})
	}
	if err == nil {
		s.remote, err = runner.ResumeRemote(dir, c.Config)
	}
	if err != nil {
		return errors.Join(err, s.executor.Close())
	}
	return s.run(ctx)
}

func newDispatcher(c Config) (*dispatcher, error) {
	if all := c.Experiment.EventCommands(); len(all) > 0 {
		return nil, advice.With(fmt.Errorf("%w for %s: events run commands on the machine that runs skerry, and an engine can kill a task "+
			"before the undo runs (%s)", executor.ErrUnavailable, c.Experiment.Name, all[0]), "remove --on, or the command events")
	}
	if err := checkClusters(c.Experiment, c.On); err != nil {
		return nil, err
	}
	if c.pace == nil {
		c.pace = newPace()
	}
	c.beat = cmp.Or(c.beat, claimBeat)
	s := &dispatcher{
		Config: c, begun: time.Now(),
		open: map[int]*submittedTask{}, byTrial: map[int]*submittedTask{}, tries: map[int]int{}, done: map[int]bool{},
		firstSubmitted: map[int]time.Time{}, reported: map[string]bool{},
	}
	var err error
	s.executor, err = Open(c.On, c.Options, s)
	return s, err
}

func (s *dispatcher) PackPlan(trials []int) ([]byte, error) {
	return bundle.PackPlan(s.dir, s.writer.Run(), trials)
}

func (s *dispatcher) ReceiveResults(printed io.Reader) (string, error) {
	return bundle.ReadResults(printed, s.writer)
}

func (s *dispatcher) run(ctx context.Context) error {
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	err := s.prepare()
	var c *claim
	if err == nil {
		c, err = acquireClaim(s.dir, s.beat, gone)
	}
	if err == nil {
		err = errors.Join(s.measureAll(ctx), c.close())
	}
	if taken := context.Cause(ctx); errors.Is(taken, errSuperseded) {
		return errors.Join(advice.With(taken, "follow the run there; no results are lost"), s.executor.Close(), s.writer.Close())
	}
	return errors.Join(err, s.executor.Close(), s.writer.Finish())
}

func (s *dispatcher) prepare() error {
	s.writer = s.remote.Writer()
	if s.limits.Warning != nil {
		s.Progress.Linef("note: %v", s.limits.Warning)
	}
	var err error
	if s.dir, err = filepath.Abs(s.writer.Dir()); err != nil {
		return fmt.Errorf("resolve run directory: %w", err)
	}
	if s.cwd, err = os.Getwd(); err != nil {
		return fmt.Errorf("read working directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, executor.Folder), 0o755); err != nil {
		return fmt.Errorf("create engine folder: %w", err)
	}
	if s.state.Schema == "" {
		s.state = State{Schema: stateSchema, On: s.On, Options: s.Options, Token: rand.Text(), Next: 1}
		if err := s.remote.RecordVersions(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, executor.TokenFile), []byte(s.state.Token+"\n"), 0o644); err != nil {
		return fmt.Errorf("write token of the run directory: %w", err)
	}
	left := s.writer.Remaining()
	for _, p := range s.writer.Run().Plan {
		s.done[p.ID] = true
		s.tasks = max(s.tasks, p.Task)
	}
	for _, p := range left {
		delete(s.done, p.ID)
	}
	s.restoreQueue(record.Tasks(left))
	return s.saveState()
}

// restoreQueue queues the remaining tasks except those that an earlier process submitted.
func (s *dispatcher) restoreQueue(left []record.Task) {
	with := map[int]int{} // submission number by task
	for _, sub := range s.state.Open {
		for _, id := range sub.Tasks {
			if !sub.Rerun {
				with[id] = sub.Number
			}
		}
	}
	for _, t := range left {
		if number, is := with[t.ID]; is {
			s.trackTask(t, number)
		} else {
			s.queue = append(s.queue, t)
		}
	}
	s.pruneSubmissions()
}

// measureAll measures the remaining trials, then reruns suspect ones.
func (s *dispatcher) measureAll(ctx context.Context) error {
	feed, close := s.remote.OpenFeed()
	s.feed = feed
	err := s.runQueue(ctx)
	for err == nil && ctx.Err() == nil && !s.Suspect {
		again := s.remote.RetryTrials()
		if len(again) == 0 {
			break
		}
		s.rerun, s.queue, s.tries = true, record.Tasks(again), map[int]int{}
		s.Progress.Linef("rerunning %s", runner.CountNoun(len(again), "suspect trial"))
		err = s.runQueue(ctx)
	}
	s.Progress.Done()
	if errors.Is(context.Cause(ctx), errSuperseded) {
		return errors.Join(err, close())
	}
	switch {
	case ctx.Err() != nil:
		err = errors.Join(err, s.interrupt())
	case errors.Is(err, executor.ErrFatal):
		err = errors.Join(err, s.cancel())
	case err == nil:
		err = s.outcome()
	}
	return errors.Join(err, s.saveState(), close())
}

// interrupt ends an interrupted run. Submitted tasks continue, or are cancelled if the user wants that.
func (s *dispatcher) interrupt() error {
	done, total, open := len(s.done), len(s.writer.Run().Plan), len(s.open)
	if open > 0 && s.Cancel != nil && s.Cancel() {
		return advice.With(fmt.Errorf("cancelled after %d of %d trials: %w", done, total, errors.Join(context.Canceled, s.cancel())),
			"resume with: skerry run --resume %s", s.writer.Dir())
	}
	return advice.With(fmt.Errorf("stopped after %d of %d trials, with %s left at %s: %w", done, total,
		runner.CountNoun(open, "task"), s.state.On, context.Canceled),
		"collect their results and submit the rest with: skerry run --resume %s", s.writer.Dir())
}

// cancel cancels the submitted tasks, even if the run's context has ended.
func (s *dispatcher) cancel() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err := s.executor.Cancel(ctx, s.state.Open)
	s.state.Open = nil
	return err
}

func (s *dispatcher) outcome() error {
	if len(s.lost) == 0 {
		return s.remote.Outcome()
	}
	last := s.state.Tasks.Troubles[len(s.state.Tasks.Troubles)-1]
	return advice.With(fmt.Errorf("%s ended without results %d times, the last one %s: %s", runner.CountNoun(len(s.lost), "task"),
		maxTries, atMachine(last.Where), last.Why),
		"see their output in %s, then resume with: skerry run --resume %s", filepath.Join(s.dir, executor.Folder), s.writer.Dir())
}

func atMachine(where string) string {
	if where == "" {
		return "before it had a machine"
	}
	return "on " + where
}
