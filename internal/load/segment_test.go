package load

import (
	"testing"
	"time"
)

// TestStoppedWhileAnswersAreAwaited has a drive that is stopped once its time had run out have sent for that time, and
// no longer: the drive beside it ended, and this one only waited for its last answers.
func TestStoppedWhileAnswersAreAwaited(t *testing.T) {
	for _, c := range []struct {
		at, took time.Duration
		why      string
	}{
		{5 * time.Second, 4 * time.Second, StoppedAsked},
		{11*time.Second + 260*time.Millisecond, 10 * time.Second, StoppedDuration},
	} {
		g := &segment{start: time.Second, end: 11 * time.Second, now: func() time.Duration { return c.at }, stopped: make(chan struct{})}
		g.stop(StoppedAsked)
		if why, took := g.outcome(c.at + 40*time.Millisecond); why != c.why || took != c.took {
			t.Errorf("stopped at %v: %q after %v, want %q after %v", c.at, why, took, c.why, c.took)
		}
	}
}
