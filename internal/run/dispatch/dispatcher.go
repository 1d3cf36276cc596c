// Package dispatch has the trials of a run measured by an engine: it hands tasks over, sees what
// became of them, takes in the results, and hands over again what ended without any.
//
// It is the run's only writer. Whenever it ends, by a kill too, the directory holds what came in and
// what was handed over, so that another one goes on from there.
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

// Config is what a sweep is started with.
type Config struct {
	runner.Config
	// On names the engine; a run that is taken up has its own.
	On      string
	Options Options
	// Cancel is asked once the sweep is interrupted: whether to cancel what was handed over, which
	// is left to go on else. nil leaves it.
	Cancel func() bool

	pace *pace         // nil for the usual one
	beat time.Duration // of the claim, 0 for the usual one
}

// dispatcher is one under way.
type dispatcher struct {
	Config
	remote   *runner.RemoteRun
	writer   *record.Writer
	executor executor.Executor
	limits   executor.Limits
	feed     *live.Feed
	dir, cwd string // absolute

	state   State
	saved   string        // how the state was when it was written last
	queue   []record.Task // to be handed over
	open    map[int]*submittedTask
	byTrial map[int]*submittedTask // those of open, by trial
	tries   map[int]int            // of tasks in this process
	// handed is when tasks were handed over first, by this process; told are the oddities of
	// machines that were told.
	firstSubmitted map[int]time.Time
	reported       map[string]bool
	health         machineHealth
	rerun          bool  // suspect trials are run again
	lost           []int // tasks that were given up
	begun          time.Time
	tasks          int          // of the whole plan
	done           map[int]bool // trials that have a result
	measured       int          // trials that measured, of those that came in to this process
	failed         int          // and those that did not
}

// submittedTask is a task that is with the engine.
type submittedTask struct {
	task       record.Task
	number     int // of its submission
	status     executor.Status
	since      time.Time // when it was seen running
	finalPolls int       // polls that found it over without all results
	results    map[int]bool
}

// Run has a new run measured, and returns its directory as runner.Run does.
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

// Resume goes on with a run: what is with its engine is left there, and only the rest is handed over.
// ErrNoEngine says that the run is not one on an engine.
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
			c.Progress.Linef("note: process %d on %s takes care of this run, or did: watching whether it still does", o.Process, o.Host)
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

// PackPlan implements engine.Home.
func (s *dispatcher) PackPlan(trials []int) ([]byte, error) {
	return bundle.PackPlan(s.dir, s.writer.Run(), trials)
}

// ReceiveResults implements engine.Home.
func (s *dispatcher) ReceiveResults(printed io.Reader) (string, error) {
	return bundle.ReadResults(printed, s.writer)
}

// run is a sweep from its beginning to its end.
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
		return errors.Join(advice.With(taken, "follow it there; nothing is lost"), s.executor.Close(), s.writer.Close())
	}
	return errors.Join(err, s.executor.Close(), s.writer.Finish())
}

// prepare makes the engine's folder and finds out what is left to do.
func (s *dispatcher) prepare() error {
	s.writer = s.remote.Writer()
	if s.limits.Warning != nil {
		s.Progress.Linef("note: %v", s.limits.Warning)
	}
	var err error
	if s.dir, err = filepath.Abs(s.writer.Dir()); err != nil {
		return fmt.Errorf("naming the run directory: %w", err)
	}
	if s.cwd, err = os.Getwd(); err != nil {
		return fmt.Errorf("naming this directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, executor.Folder), 0o755); err != nil {
		return fmt.Errorf("making the engine's folder: %w", err)
	}
	if s.state.Schema == "" {
		s.state = State{Schema: stateSchema, On: s.On, Options: s.Options, Token: rand.Text(), Next: 1}
		if err := s.remote.RecordVersions(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, executor.TokenFile), []byte(s.state.Token+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the token of the run directory: %w", err)
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

// restoreQueue queues what is left, but for what an earlier sweep has handed over.
func (s *dispatcher) restoreQueue(left []record.Task) {
	with := map[int]int{} // the number of its submission, by task
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

// measureAll has everything measured that is left, suspect trials again among it.
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
		s.Progress.Linef("%d suspect trials are run again", len(again))
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

// interrupt ends an interrupted sweep: what was handed over goes on without it, or is cancelled.
func (s *dispatcher) interrupt() error {
	done, total, open := len(s.done), len(s.writer.Run().Plan), len(s.open)
	if open > 0 && s.Cancel != nil && s.Cancel() {
		return advice.With(fmt.Errorf("cancelled after %d of %d trials: %w", done, total, errors.Join(context.Canceled, s.cancel())),
			"go on with: skerry run --resume %s", s.writer.Dir())
	}
	return advice.With(fmt.Errorf("left after %d of %d trials, with %d tasks at %s: %w", done, total, open, s.state.On, context.Canceled),
		"what they measure is taken in, and the rest handed over, by: skerry run --resume %s", s.writer.Dir())
}

// cancel ends what was handed over; it has time of its own, since the sweep's may have ended.
func (s *dispatcher) cancel() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err := s.executor.Cancel(ctx, s.state.Open)
	s.state.Open = nil
	return err
}

// outcome is how a sweep ends whose tasks are all over.
func (s *dispatcher) outcome() error {
	if len(s.lost) == 0 {
		return s.remote.Outcome()
	}
	last := s.state.Tasks.Troubles[len(s.state.Tasks.Troubles)-1]
	return advice.With(fmt.Errorf(
		"%d tasks ended %d times without their results, the last one %s: %s", len(s.lost), maxTries,
		atMachine(last.Where), last.Why,
	),
		"what they said is in %s; then: skerry run --resume %s", filepath.Join(s.dir, executor.Folder), s.writer.Dir())
}

func atMachine(where string) string {
	if where == "" {
		return "nowhere"
	}
	return "on " + where
}
