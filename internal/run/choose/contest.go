package choose

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/evidence/race"
	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/internal/run/runner"
	"skerry/internal/topology"
)

// Errors of a contest.
var (
	// ErrNeeds says that the needs cannot be answered as they are: nothing was started.
	ErrNeeds = errors.New("the needs cannot be answered")
	// ErrNone says that no candidate meets the needs.
	ErrNone = errors.New("no candidate meets the needs")
)

// Contest is a choice between candidates, with its folder.
type Contest struct {
	Needs      Needs
	Dir        string
	Candidates []Candidate
	Left       []Left

	byID map[string]Candidate
	runs map[race.Heat]*record.Dir
	race *race.Race
}

// Plan reads what could do and refuses what cannot be answered, before anything starts.
func Plan(n Needs, dir string, registry []database.About) (*Contest, error) {
	c := &Contest{Needs: n, Dir: dir, byID: map[string]Candidate{}, runs: map[race.Heat]*record.Dir{}}
	cloud, err := c.cloud(registry)
	if err != nil {
		return nil, err
	}
	if c.Candidates, c.Left, err = candidates(n, registry, cloud); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	config := race.Config{Budget: n.Budget.Duration().Seconds(), Repetitions: n.Repetitions}
	for _, x := range c.Candidates {
		c.byID[x.ID()] = x
		config.Candidates = append(config.Candidates, x.ID())
	}
	config.Guess = (setup + n.lasts(nil).Duration()).Seconds()
	for i := range n.BadDays {
		config.Days = append(config.Days, n.BadDays[i].Label())
	}
	if len(c.Candidates) == 0 {
		why := ""
		for _, l := range c.Left {
			why += "\n  " + l.Who + ": " + l.Why
		}
		return nil, advice.With(fmt.Errorf("%w: no candidate is left:%s", ErrNeeds, why), "install one, or ask for less under must")
	}
	if least := config.Guess * float64(len(c.Candidates)); config.Budget < least {
		return nil, advice.With(fmt.Errorf("%w: one quiet trial of each of %d candidates takes about %v, and the budget is %v",
			ErrNeeds, len(c.Candidates), time.Duration(least*float64(time.Second)).Round(time.Second), n.Budget),
			"raise the budget, shorten measure, or name fewer databases under consider")
	}
	c.race = race.New(config)
	return c, c.check(registry)
}

// cloud is the topology with the client in it.
func (c *Contest) cloud(registry []database.About) (t topology.Topology, err error) {
	probe := Candidate{Database: registry[0].Name}
	text, err := c.Needs.experiment(probe, race.Quiet)
	if err != nil {
		return t, err
	}
	e, err := experiment.Parse(filepath.Join(c.Needs.dir, "cloud.yaml"), text, nil, false)
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	return e.Cloud()
}

// check refuses a day that cannot happen to a candidate, as validate refuses an experiment.
func (c *Contest) check(registry []database.About) error {
	databases := map[string]database.Database{}
	for _, a := range registry {
		databases[a.Name] = a.New()
	}
	var errs []error
	for _, x := range c.Candidates {
		for _, day := range append([]string{race.Quiet}, c.race.Days...) {
			text, err := c.Needs.experiment(x, day)
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
// beside an error that ends the contest.
type Measure func(ctx context.Context, source record.File, out string) (dir string, err error)

// By measures as skerry run does. Config tells how; its experiment is replaced. Lines that stay are
// the contest's own.
func By(config runner.Config, databases map[string]database.Database) Measure {
	return func(ctx context.Context, source record.File, out string) (string, error) {
		config, from := config, config.Source.From
		config.Out, source.From = out, from
		if err := config.SetSource(source, databases); err != nil {
			return "", err
		}
		config.Progress = config.Progress.Live()
		defer config.Progress.Done()
		dir, err := runner.Run(ctx, config)
		if errors.Is(err, runner.ErrTrials) || errors.Is(err, runner.ErrAssertions) || errors.Is(err, runner.ErrSuspect) {
			err = ctx.Err() // what became of the trial is in its run
		}
		return dir, err
	}
}

// Run holds the race: it measures what is not there yet, tells each heat, and ends when nothing
// more is worth its time or the budget is spent.
func (c *Contest) Run(ctx context.Context, measure Measure, tell func(line string)) error {
	for {
		heats := c.race.Next()
		if len(heats) == 0 {
			return nil
		}
		for _, h := range heats {
			d, err := c.heat(ctx, h, measure)
			if err != nil {
				return err
			}
			c.runs[h] = d
			result := c.result(h, d)
			c.race.Tell(result)
			tell(c.line(result))
		}
	}
}

// Replay holds the race over what was measured, and measures nothing.
func (c *Contest) Replay() error {
	for {
		told := 0
		for _, h := range c.race.Next() {
			_, text, err := c.write(h)
			if err != nil {
				return err
			}
			d, err := c.done(h, text)
			if err != nil {
				return err
			}
			if d == nil {
				continue
			}
			c.runs[h] = d
			c.race.Tell(c.result(h, d))
			told++
		}
		if told == 0 {
			return nil
		}
	}
}

// heat measures one heat, unless that was done.
func (c *Contest) heat(ctx context.Context, h race.Heat, measure Measure) (*record.Dir, error) {
	path, text, err := c.write(h)
	if err != nil {
		return nil, err
	}
	if d, err := c.done(h, text); err != nil || d != nil {
		return d, err
	}
	seed := fmt.Sprintf("seed=%d", c.Needs.Seed+uint64(h.N)-1)
	dir, err := measure(ctx, record.File{Path: path, Text: string(text), Set: []string{seed}}, c.folder(h))
	if err != nil {
		return nil, fmt.Errorf("measuring %s on the day %q: %w", c.byID[h.Candidate].Label(), h.Day, err)
	}
	return record.Open(dir)
}
