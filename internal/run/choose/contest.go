package choose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/evidence/race"
	"skerry/internal/experiment"
	"skerry/internal/lab/overlay/babel"
	"skerry/internal/record"
	"skerry/internal/record/metric"
	"skerry/internal/run/runner"
	"skerry/internal/run/trial"
	"skerry/internal/topology"
)

// Errors of a contest.
var (
	// ErrNeeds says that the needs cannot be answered as they are: nothing was started.
	ErrNeeds = errors.New("the needs cannot be answered")
	// ErrNone says that no candidate meets the needs.
	ErrNone = errors.New("no candidate meets the needs")
	// ErrNothing says that of no candidate is known whether it does.
	ErrNothing = errors.New("no candidate could be measured to the end")
)

// Contest is a choice between candidates, with its folder.
type Contest struct {
	Needs      Needs
	Dir        string
	Candidates []Candidate
	Excluded   []Excluded
	// Notes are what was decided for whoever wrote the needs.
	Notes []string
	// Elsewhere says that trials are measured by an engine, for which this machine's room is no bound.
	Elsewhere bool

	registry []database.About
	byID     map[string]Candidate
	runs     map[race.Heat]*record.Dir
	busy     []period
	race     *race.Race
	state    Standing
}

// Cloud is where it is held, with the clients in it.
func (c *Contest) Cloud() topology.Topology { return c.Needs.built }

// Options says how a contest is held, beside the needs.
type Options struct {
	// Exhaustive has everything measured, whatever the budget: what a race is compared with.
	Exhaustive bool
	// Memory is this machine's in bytes, 0 where it is not known or other machines measure.
	Memory int64
}

// Plan reads what could do and refuses what cannot be answered, before anything starts.
func Plan(n Needs, dir string, registry []database.About, how Options) (*Contest, error) {
	c := &Contest{Needs: n, Dir: dir, registry: registry, byID: map[string]Candidate{}, runs: map[race.Heat]*record.Dir{}}
	if err := c.buildCloud(); err != nil {
		return nil, err
	}
	var err error
	if c.Candidates, c.Excluded, err = findCandidates(c.Needs, registry, how.Memory); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	config := race.Config{Budget: n.Budget.Duration().Seconds(), Repetitions: n.Repetitions, Exhaustive: how.Exhaustive}
	for _, x := range c.Candidates {
		c.byID[x.ID()] = x
		config.Candidates = append(config.Candidates, x.ID())
	}
	config.Guess = (setupGuess + n.measureTime(nil).Duration()).Seconds()
	for i := range n.BadDays {
		config.Days = append(config.Days, n.BadDays[i].Label())
		config.BadGuess = max(config.BadGuess, (setupGuess + n.measureTime(&n.BadDays[i]).Duration()).Seconds())
	}
	if len(c.Candidates) == 0 {
		why := ""
		for _, l := range c.Excluded {
			why += "\n  " + l.Who + ": " + l.Why
		}
		return nil, advice.With(fmt.Errorf("%w: no candidate is left:%s", ErrNeeds, why), "install one, or ask for less under must")
	}
	if least := config.Guess * float64(len(c.Candidates)); config.Budget < least && !how.Exhaustive {
		return nil, advice.With(fmt.Errorf("%w: one quiet trial of each of %d candidates takes about %v, and the budget is %v",
			ErrNeeds, len(c.Candidates), time.Duration(least*float64(time.Second)).Round(time.Second), n.Budget),
			"raise the budget, shorten measure, or name fewer databases under consider")
	}
	if whole := config.Guess*float64(len(c.Candidates)) + config.BadGuess*float64(len(config.Days)); config.Budget < whole && !how.Exhaustive {
		c.Notes = append(c.Notes, fmt.Sprintf("to take one candidate through all bad days takes about %v, and the budget is %v: the answer may be open",
			time.Duration(whole*float64(time.Second)).Round(time.Second), n.Budget))
	}
	if m, err := metric.Parse(n.Prefer[0]); err == nil && m.Unit == metric.Share {
		c.Notes = append(
			c.Notes,
			fmt.Sprintf(
				"candidates are ranked by %s on a quiet day, when most have all of it: bound it under must, for the bad days too, and prefer a latency, a rate or a cost",
				n.Prefer[0],
			),
		)
	}
	c.race = race.New(config)
	return c, c.checkDays(registry)
}

// buildCloud builds the topology with the clients in it. Where links do not join all sites and nobody said
// how packets go then, they are routed.
func (c *Contest) buildCloud() error {
	e, err := c.cloudExperiment()
	if err != nil && c.Needs.Cloud.Overlay.Kind == "" && c.Needs.Cloud.Mesh.Links > 0 {
		c.Needs.Cloud.Overlay.Kind = babel.Name
		routed, routedErr := c.cloudExperiment()
		if routedErr == nil {
			e, err = routed, nil
			c.Notes = append(
				c.Notes,
				fmt.Sprintf(
					"%d links do not join every two sites, so that %s leads packets over several; overlay: under cloud says otherwise",
					c.Needs.Cloud.Mesh.Links, babel.Name,
				),
			)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	c.Needs.built, err = e.Cloud()
	return err
}

// cloudExperiment is a quiet experiment of any database that forms a cluster there: it tells whether cloud, clients and load are right.
func (c *Contest) cloudExperiment() (experiment.Experiment, error) {
	text, err := c.Needs.experimentYAML(Candidate{Database: c.registry[0].Name}, race.Quiet)
	if err != nil {
		return experiment.Experiment{}, err
	}
	return experiment.Parse(filepath.Join(c.Needs.dir, "cloud.yaml"), text, nil, false)
}

// checkDays refuses a day that cannot happen to a candidate, as validate refuses an experiment.
func (c *Contest) checkDays(registry []database.About) error {
	databases := map[string]database.Database{}
	for _, a := range registry {
		databases[a.Name] = a.New()
	}
	var errs []error
	for _, x := range c.Candidates {
		for _, day := range append([]string{race.Quiet}, c.race.Days...) {
			text, err := c.Needs.experimentYAML(x, day)
			if err != nil {
				return err
			}
			e, err := experiment.Parse(filepath.Join(c.Needs.dir, "experiment.yaml"), text, nil, false)
			if err == nil {
				err = experiment.Check(e, databases)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, on the day %q: %w", x.Label(), day, err))
				break
			}
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrNeeds, errors.Join(errs...))
	}
	return nil
}

// Measure runs an experiment, with its run directory below out, and returns the directory's path,
// beside an error that ends the contest. Several may go on at once.
type Measure func(ctx context.Context, source record.File, out string, at Lane) (dir string, err error)

// Lane is where one of several runs goes on: its number, from 0, and how many go on beside it.
type Lane struct{ Number, Beside int }

// NewMeasure measures as skerry run does. Config tells how; its experiment is replaced, and what its source sets is set in each. Lines that stay are
// the contest's own. Launch runs what is configured: on this machine, or elsewhere.
func NewMeasure(
	config runner.Config, databases map[string]database.Database,
	launch func(context.Context, runner.Config) (string, error),
) Measure {
	turns := trial.NewPhaseScheduler()
	return func(ctx context.Context, source record.File, out string, at Lane) (string, error) {
		config, own := config, config.Source
		config.Out, source.From, source.Set = out, own.From, slices.Concat(source.Set, own.Set)
		if err := config.SetSource(source, databases); err != nil {
			return "", err
		}
		config.Phases, config.Lane, config.Beside = turns, at.Number, at.Beside
		config.Progress = config.Progress.Live()
		defer config.Progress.Done()
		dir, err := launch(ctx, config)
		if errors.Is(err, runner.ErrTrials) || errors.Is(err, runner.ErrAssertions) || errors.Is(err, runner.ErrSuspect) {
			err = ctx.Err() // what became of the trial is in its run
		}
		return dir, err
	}
}

// Run holds the race: it measures what is not there yet, tells each heat, and ends when nothing
// more is worth its time or the budget is spent.
func (c *Contest) Run(ctx context.Context, measure Measure, tell func(line string) error) error {
	// What a heat has cost or shown may make the next ones of its stage not worth their time: they are asked for anew.
	for heats := c.race.Next(); len(heats) > 0; heats = c.race.Next() {
		if err := c.runHeats(ctx, heats[:min(c.lanes(), len(heats))], measure, tell); err != nil {
			return err
		}
	}
	return nil
}

// lanes is how many heats may run at the same time, by what those so far have used.
func (c *Contest) lanes() int {
	if c.Elsewhere {
		if c.Needs.Parallel == experiment.Auto {
			return autoElsewhere
		}
		return max(1, int(c.Needs.Parallel))
	}
	var ended []record.Trial
	for _, d := range c.runs {
		if t, ok := firstTrial(d); ok {
			ended = append(ended, t)
		}
	}
	return runner.MaxParallel(c.Needs.Parallel, ended)
}

// autoElsewhere is how many trials an engine is given at once where nobody says.
const autoElsewhere = 8

// runHeats measures heats side by side and takes their results in their order, so that the same runs lead
// to the same race again.
func (c *Contest) runHeats(ctx context.Context, heats []race.Heat, measure Measure, tell func(line string) error) error {
	found := make([]*record.Dir, len(heats))
	group, inside := errgroup.WithContext(ctx)
	for i, h := range heats {
		group.Go(func() (err error) {
			found[i], err = c.runHeat(inside, h, measure, Lane{i, len(heats) - 1})
			return err
		})
	}
	err := group.Wait()
	for i, h := range heats {
		if found[i] == nil {
			continue
		}
		if tellErr := tell(c.addRun(h, found[i])); err == nil {
			err = tellErr
		}
	}
	return err
}

// addRun takes the run of a heat into the race, and says what came of it.
func (c *Contest) addRun(h race.Heat, d *record.Dir) string {
	c.runs[h] = d
	result := c.raceResult(h, d)
	c.race.Tell(result)
	return c.progressLine(result)
}

// Replay holds the race over what was measured. It measures nothing and leaves the folder as it is.
func (c *Contest) Replay() error {
	for {
		told := 0
		for _, h := range c.race.Next() {
			text, err := c.Needs.experimentYAML(c.byID[h.Candidate], h.Day)
			if err != nil {
				return err
			}
			d, _, err := c.findRun(h, text)
			if err != nil {
				return err
			}
			if d != nil {
				c.addRun(h, d)
				told++
			}
		}
		if told == 0 {
			return nil
		}
	}
}

// runHeat measures one heat, unless that was done.
func (c *Contest) runHeat(ctx context.Context, h race.Heat, measure Measure, at Lane) (*record.Dir, error) {
	path, text, err := c.writeExperiment(h)
	if err != nil {
		return nil, err
	}
	d, left, err := c.findRun(h, text)
	if err != nil || d != nil {
		return d, err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return nil, fmt.Errorf("clearing what was left of %s: %w", h.Candidate, err)
		}
	}
	seed := fmt.Sprintf("seed=%d", c.Needs.Seed+uint64(h.N)-1)
	dir, err := measure(ctx, record.File{Path: path, Text: string(text), Set: []string{seed}}, c.runsDir(h), at)
	if err != nil {
		return nil, fmt.Errorf("measuring %s on the day %q: %w", c.byID[h.Candidate].Label(), h.Day, err)
	}
	return record.Open(dir)
}

// period is a time in which the contest measured.
type period struct{ from, to time.Time }

// addPeriod takes a run into what the contest has taken, and returns by how many seconds that is longer
// now: from its begin to its end, attempts that were run again among them, but for what ran beside it.
//
//	run 1  ├──────────────┤            14 s
//	run 2       ├──────────────┤        5 s more
func (c *Contest) addPeriod(d *record.Dir) (seconds float64) {
	if d == nil {
		return 0
	}
	now := period{d.Run.Started, d.Run.Finished}
	least := 0.0
	for _, t := range d.Summary.Trials {
		least += t.SetupS + t.WarmupS + t.DurationS
	}
	if now.to.Before(now.from) { // its end was not recorded
		now.to = now.from.Add(time.Duration(least * float64(time.Second)))
	}
	left := []period{now}
	for _, b := range c.busy {
		var rest []period
		for _, p := range left {
			rest = append(rest, p.subtract(b)...)
		}
		left = rest
	}
	c.busy = append(c.busy, now)
	for _, p := range left {
		seconds += p.to.Sub(p.from).Seconds()
	}
	return seconds
}

// subtract is what is left of a period where another is taken out.
func (p period) subtract(o period) (left []period) {
	if !o.from.Before(p.to) || !p.from.Before(o.to) {
		return []period{p}
	}
	if p.from.Before(o.from) {
		left = append(left, period{p.from, o.from})
	}
	if o.to.Before(p.to) {
		left = append(left, period{o.to, p.to})
	}
	return left
}
