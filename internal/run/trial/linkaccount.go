package trial

import (
	"sync"
	"time"

	"skerry/internal/evidence/linkcheck"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/record"
)

// linkAccount accumulates what the links did to packets, per second of the measurement. It is safe for
// concurrent use.
type linkAccount struct {
	mu    sync.Mutex
	began time.Time
	read  time.Time // of the last reading; zero before start and after finish
	last  map[string]link.Stats
	check linkcheck.Checker
}

// start makes a reading the start of the measurement.
func (l *linkAccount) start(began, at time.Time, stats []link.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.read, l.last = began, at, byID(stats)
}

// addReading returns the rows of the second that the reading ends, without idle directions. It skips a
// reading less than half a second after the previous one.
func (l *linkAccount) addReading(at time.Time, stats map[string]link.Stats, links []lab.Link) []record.DirectionSecond {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read.IsZero() || at.Sub(l.read) < time.Second/2 {
		return nil
	}
	// Seconds are those of the sampler: a reading ends the previous second.
	return l.addSecond(int64(at.Sub(l.began)/time.Second)-1, at, stats, links)
}

// finish adds what the links counted after the last whole second.
func (l *linkAccount) finish(at time.Time, stats map[string]link.Stats, links []lab.Link) (rows []record.DirectionSecond) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.read.IsZero() {
		rows = l.addSecond(int64(l.read.Sub(l.began)/time.Second), at, stats, links)
	}
	l.read = time.Time{}
	return rows
}

// result returns the account of the measurement, including the observations of its events.
func (l *linkAccount) result(events []record.Event) record.LinkAccount {
	for _, e := range events {
		for _, s := range []*record.Step{e.Apply, e.Revert} {
			if s != nil {
				l.addChange(s.Observed)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.check.Result()
}

func (l *linkAccount) addSecond(t int64, at time.Time, stats map[string]link.Stats, links []lab.Link) (rows []record.DirectionSecond) {
	for _, k := range links {
		now, was := stats[k.ID], l.last[k.ID]
		for _, d := range []struct {
			way         linkcheck.Direction
			set         link.Quality
			before, now link.Counters
		}{
			{linkcheck.Direction{Link: k.ID, From: k.A, To: k.B}, k.AB, was.AB, now.AB},
			{linkcheck.Direction{Link: k.ID, From: k.B, To: k.A}, k.BA, was.BA, now.BA},
		} {
			s := linkcheck.Second{Direction: d.way, T: t, Length: at.Sub(l.read), Set: d.set, Counters: linkcheck.CountersBetween(d.before, d.now)}
			l.check.Add(s)
			if !s.Idle() {
				rows = append(rows, s.Row())
			}
		}
	}
	l.read, l.last = at, stats
	return rows
}

// addChange adds the observation made after a change of links.
func (l *linkAccount) addChange(o *record.Observed) {
	if o == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check.AddChange(*o)
}
