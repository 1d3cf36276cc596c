package experiment

import (
	"fmt"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
)

// minEvery is the shortest interval between changes of links: changing all of azure8 takes some milliseconds.
const minEvery = unit.Duration(10 * time.Millisecond)

// check completes a decoded experiment, and returns the problems that involve more than one field.
func (e *Experiment) check() strict.Problems {
	c := &checker{e: e}
	c.database()
	c.adoptFiles()
	c.checkStop()
	c.checkWorkloads()
	if len(c.problems) == 0 { // both depend on the workload
		c.checkAudit()
		c.checkAssertions()
	}
	if c.buildCloud(); len(c.problems) == 0 {
		c.checkMachines()
		c.checkDrift()
		c.checkEvents()
		c.checkReuse()
	}
	return c.problems
}

type checker struct {
	e        *Experiment
	problems strict.Problems
}

func (c *checker) fail(path, hint, format string, args ...any) {
	c.problems = append(c.problems, c.e.problem(path, hint, format, args...))
}

func (c *checker) checkStop() {
	s := &c.e.Stop
	if c.e.isSet("stop.time") && s.Time == 0 {
		c.fail("stop.time", "remove it for no limit", "measurement time must be positive")
	}
	if s.Operations == 0 && s.Time == 0 {
		s.Time = defaultTime
	}
	if s.Confidence >= 1 {
		c.fail("stop.confidence", "write 5%", "confidence must be below 100%%")
	}
	if s.Time > 0 && s.MinTime > s.Time {
		if s.Confidence > 0 && c.e.isSet("stop.min_time") && !c.e.origin.fast {
			c.fail("stop.min_time", "make it shorter than stop.time",
				"%v is not before the end of the trial (stop.time), so confidence cannot end it", s.MinTime)
		}
		s.MinTime = s.Time
	}
}

// checkDrift checks the drift, and that it begins before the trial ends.
func (c *checker) checkDrift() {
	d := c.e.Drift
	if d == nil {
		return
	}
	if len(d.Steps) == 0 && d.Trace == "" && d.Mobility == nil {
		c.fail("drift", "give steps, trace or mobility", "drift is empty")
		return
	}
	if d.Every < minEvery {
		c.fail("drift.every", "write 100ms", "interval %v is below the minimum %v", d.Every, minEvery)
	}
	end := c.e.Stop.Time
	for i, s := range d.Steps {
		if end > 0 && s.At >= end {
			c.fail(fmt.Sprintf("drift.steps[%d].at", i), "make the trial longer or the step earlier",
				"step at %v is after the end of the trial (stop.time is %v)", s.At, end)
		}
	}
	if _, err := c.e.LinkProfiles(c.e.origin.cloud); err != nil {
		c.problems = append(c.problems, asProblems(err, strict.Pos{})...)
		return
	}
	c.checkTraceTimes()
}
