package choose

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

var (
	// ErrNeeds means that the needs cannot be answered; nothing was started.
	ErrNeeds = errors.New("the needs cannot be answered")
	// ErrNone means that no candidate meets the needs.
	ErrNone = errors.New("no candidate meets the needs")
	// ErrNothing means that no candidate was measured completely.
	ErrNothing = errors.New("no candidate was measured completely")
)

// Contest is a choice between candidates, with its folder.
type Contest struct {
	Needs      Needs
	Dir        string
	Candidates []Candidate
	Excluded   []Excluded
	// Notes are decisions that the needs left open.
	Notes []string
	// Elsewhere means that an executor measures the trials, so that this machine's capacity does not limit
	// them.
	Elsewhere bool

	registry  []database.About
	databases map[string]database.Database
	byID      map[string]Candidate
	runs      map[race.Heat]*record.Dir
	busy      []period
	race      *race.Race
	state     Standing
}

// Cloud returns the topology, including clients.
func (c *Contest) Cloud() topology.Topology { return c.Needs.built }

// Options configure a contest.
type Options struct {
	// Exhaustive measures everything regardless of the budget, as a reference for a race.
	Exhaustive bool
	// Memory of this machine in bytes, 0 if unknown or if other machines measure.
	Memory int64
}

// Plan finds the candidates and rejects needs that cannot be answered, before anything starts.
func Plan(n Needs, dir string, registry []database.About, how Options) (*Contest, error) {
	c := &Contest{
		Needs: n, Dir: dir, registry: registry, databases: map[string]database.Database{}, byID: map[string]Candidate{},
		runs: map[race.Heat]*record.Dir{},
	}
	for _, a := range registry {
		c.databases[a.Name] = a.New()
	}
	var err error
	if n.usesLab() {
		err = c.buildCloud()
	}
	if err != nil {
		return nil, err
	}
	if c.Candidates, c.Excluded, err = findCandidates(c.Needs, registry, how.Memory); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	config := race.Config{
		Budget: n.Budget.Duration().Seconds(), Repetitions: n.Repetitions, Exhaustive: how.Exhaustive, Partial: map[string][]string{},
	}
	for i := range c.Candidates {
		x := &c.Candidates[i]
		if x.Own != "" {
			c.findUnmeasured(x)
			c.Notes = append(c.Notes, n.ownNotes(*x)...)
		}
		if len(x.NotMeasured) > 0 {
			config.Partial[x.ID()] = slices.Collect(maps.Keys(x.untried))
		}
		c.byID[x.ID()] = *x
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
		return nil, advice.With(fmt.Errorf("%w: no possible candidate:%s", ErrNeeds, why), "install a database, or relax must")
	}
	if least := config.Guess * float64(len(c.Candidates)); config.Budget < least && !how.Exhaustive {
		return nil, advice.With(fmt.Errorf("%w: one quiet trial of each of %d candidates takes about %v, but the budget is %v",
			ErrNeeds, len(c.Candidates), time.Duration(least*float64(time.Second)).Round(time.Second), n.Budget),
			"raise budget, shorten measure, or list fewer databases in consider")
	}
	if whole := config.Guess*float64(len(c.Candidates)) + config.BadGuess*float64(len(config.Days)); config.Budget < whole && !how.Exhaustive {
		c.Notes = append(c.Notes, fmt.Sprintf(
			"trying one candidate on all bad days takes about %v, but the budget is %v: the answer may stay open",
			time.Duration(whole*float64(time.Second)).Round(time.Second), n.Budget))
	}
	if m, err := metric.ParseName(n.Prefer[0]); err == nil && m.Unit == metric.Share {
		c.Notes = append(c.Notes,
			fmt.Sprintf("most candidates reach the best %s on the quiet day: require it in must, and prefer a latency, a rate or a cost",
				n.Prefer[0]))
	}
	c.race = race.New(config)
	return c, c.checkDays()
}

// buildCloud builds the topology with the clients. If links do not connect all sites and no overlay is
// given, it adds one.
func (c *Contest) buildCloud() error {
	e, err := c.cloudExperiment()
	if err != nil && c.Needs.Cloud.Overlay.Kind == "" && c.Needs.Cloud.Mesh.Links > 0 {
		c.Needs.Cloud.Overlay.Kind = babel.Name
		routed, routedErr := c.cloudExperiment()
		if routedErr == nil {
			e, err = routed, nil
			c.Notes = append(c.Notes,
				fmt.Sprintf("%d links do not connect all pairs of sites, so %s routes packets; set cloud.overlay to change this",
					c.Needs.Cloud.Mesh.Links, babel.Name))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	c.Needs.built, err = e.Cloud()
	return err
}

// cloudExperiment returns a quiet experiment that validates cloud, clients and load.
func (c *Contest) cloudExperiment() (experiment.Experiment, error) {
	text, err := c.Needs.experimentYAML(Candidate{Database: c.registry[0].Name}, race.Quiet)
	if err != nil {
		return experiment.Experiment{}, err
	}
	return experiment.Parse(filepath.Join(c.Needs.dir, "cloud.yaml"), text, nil, false)
}

// checkDays rejects days that cannot happen to a candidate.
func (c *Contest) checkDays() error {
	var errs []error
	for _, x := range c.Candidates {
		for _, day := range append([]string{race.Quiet}, c.race.Days...) {
			if x.untried[day] != "" {
				continue
			}
			if err := c.checkDay(x, day); err != nil {
				errs = append(errs, fmt.Errorf("%s, day %q: %w", x.Label(), day, err))
				break
			}
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrNeeds, errors.Join(errs...))
	}
	return nil
}

func (c *Contest) checkDay(x Candidate, day string) error {
	text, err := c.Needs.experimentYAML(x, day)
	if err != nil {
		return err
	}
	e, err := experiment.Parse(filepath.Join(c.Needs.dir, "experiment.yaml"), text, nil, false)
	if err != nil {
		return err
	}
	return experiment.CheckCapabilities(e, c.databases)
}

// Measure runs an experiment with its run directory below out, and returns the directory's path, also with
// an error that ends the contest. It must be safe for concurrent use.
type Measure func(ctx context.Context, source record.File, out string, at Lane) (dir string, err error)

// Lane identifies one of several concurrent runs: its number, from 0, and the number of the others.
type Lane struct{ Number, Beside int }

// NewMeasure returns a Measure that runs experiments as skerry run does. config provides everything except
// the experiment. launch runs it, on this machine or elsewhere.
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
		config.Progress = config.Progress.LivePart()
		defer config.Progress.Done()
		dir, err := launch(ctx, config)
		if errors.Is(err, runner.ErrTrials) || errors.Is(err, runner.ErrAssertions) || errors.Is(err, runner.ErrSuspect) {
			err = ctx.Err() // the run has the outcome of the trial
		}
		return dir, err
	}
}

// Run runs the race until no trial is worth its time or the budget is spent. report is called after every
// trial.
func (c *Contest) Run(ctx context.Context, measure Measure, report func(line string) error) error {
	// The result of a heat may make the next ones of its stage useless, so Next is called again.
	for heats := c.race.Next(); len(heats) > 0; heats = c.race.Next() {
		if err := c.runHeats(ctx, heats[:min(c.lanes(), len(heats))], measure, report); err != nil {
			return err
		}
	}
	return nil
}

func (c *Contest) lanes() int {
	if c.OwnClusters() { // trials on one cluster disturb each other
		return 1
	}
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

const autoElsewhere = 8

// runHeats runs heats concurrently and adds their results in order, so that a replay leads to the same
// race.
func (c *Contest) runHeats(ctx context.Context, heats []race.Heat, measure Measure, report func(line string) error) error {
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
		if reportErr := report(c.addRun(h, found[i])); err == nil {
			err = reportErr
		}
	}
	return err
}

func (c *Contest) addRun(h race.Heat, d *record.Dir) string {
	c.runs[h] = d
	result := c.raceResult(h, d)
	c.race.AddResult(result)
	return c.progressLine(result)
}

// Replay replays the race over existing runs. It neither measures nor changes the folder.
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
			return nil, fmt.Errorf("remove interrupted run of %s: %w", h.Candidate, err)
		}
	}
	seed := fmt.Sprintf("seed=%d", c.Needs.Seed+uint64(h.N)-1)
	dir, err := measure(ctx, record.File{Path: path, Text: string(text), Set: []string{seed}}, c.runsDir(h), at)
	if err != nil {
		return nil, fmt.Errorf("measure %s on day %q: %w", c.byID[h.Candidate].Label(), h.Day, err)
	}
	return record.Open(dir)
}

type period struct{ from, to time.Time }

// addPeriod adds the time of a run, retries included, to the measuring time. It returns, in seconds, the
// part that no other run covers:
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
	if now.to.Before(now.from) { // the end is not recorded
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
