package experiment

import (
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/event"
)

// Stage is where the experiment's events happen. Which nodes cannot leave is known where
// the database is given; it may be nil.
func (e Experiment) Stage(db database.Database) event.Layout {
	if e.origin == nil {
		return event.Layout{}
	}
	s := event.Layout{Topology: e.origin.cloud, Data: e.DataNodes(), Clients: e.ClientNodes(), RealLinks: e.origin.real}
	if a, ok := db.(database.Anchored); ok {
		s.Unremovable = a.Fixed(s.Data, e.Database.Options)
	}
	if f, ok := db.(database.Frail); ok {
		s.NoAbruptLeave = f.Frail(len(s.Data), e.Database.Options)
	}
	return s
}

// events checks what does not depend on the database.
func (c *checker) events() {
	s := &c.e.Stop
	event.Check(c.e.Events, c.e.Stage(nil), time.Duration(s.Time), func(path, hint, format string, args ...any) {
		c.fail("events"+path, hint, format, args...)
	})
	switch {
	case s.AfterEvents == nil:
	case len(c.e.Events) == 0:
		c.fail("stop.after_events", "leave it out, or give events", "there are no events")
	case s.Time == 0:
		c.fail("stop.after_events", "give stop.time too, the longest that the trial may take", "an event that never ends would never end the trial")
	}
}

// happenings names the events, in order: "latency, kill (killing), leave".
func (e Experiment) happenings() string {
	names := make([]string, len(e.Events))
	for i, x := range e.Events {
		if names[i] = x.Kind(); x.Name != "" && x.Name != x.Kind() {
			names[i] += " (" + x.Name + ")"
		}
	}
	return strings.Join(names, ", ")
}
