package trial

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Many trials pass many rounds: while one measures, none sets up or probes; one probes at a time; and all complete.
func TestPhases(t *testing.T) {
	turns := NewPhaseScheduler()
	var setting, probing, measuring atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				x := trialPhase{scheduler: turns}
				if err := x.enterSetUp(t.Context()); err != nil {
					t.Error(err)
				}
				setting.Add(1)
				if probing.Load()+measuring.Load() > 0 {
					t.Error("set-up during a probe or a measurement")
				}
				setting.Add(-1)
				if err := x.enterProbe(t.Context()); err != nil {
					t.Error(err)
				}
				if probing.Add(1) > 1 || setting.Load()+measuring.Load() > 0 {
					t.Error("concurrent probes")
				}
				probing.Add(-1)
				if err := x.enterMeasure(t.Context()); err != nil {
					t.Error(err)
				}
				measuring.Add(1)
				if setting.Load()+probing.Load() > 0 {
					t.Error("measurement during a set-up or a probe")
				}
				measuring.Add(-1)
				if err := x.enterSetUp(t.Context()); err != nil {
					t.Error(err)
				}
				x.leave()
			}
		})
	}
	all.Wait()
}

// Trials that set up together probe first and then measure together: the first one to probe does not measure while
// another one waits to probe.
func TestPhasesMeasureTogether(t *testing.T) {
	turns := NewPhaseScheduler()
	a, b := trialPhase{scheduler: turns}, trialPhase{scheduler: turns}
	for _, x := range []*trialPhase{&a, &b} {
		if err := x.enterSetUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	probed, measured := make(chan bool, 1), make(chan bool)
	go func() {
		if err := b.enterProbe(t.Context()); err != nil {
			t.Error(err)
		}
		probed <- true
		if err := b.enterMeasure(t.Context()); err != nil {
			t.Error(err)
		}
		close(measured)
	}()
	for waiting := func() bool {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return turns.waitingToProbe == 1
	}; !waiting(); {
		runtime.Gosched()
	}
	if err := a.enterProbe(t.Context()); err != nil { // before or after the other trial
		t.Fatal(err)
	}
	if err := a.enterMeasure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(probed) == 0 {
		t.Error("one trial measures before the other has probed")
	}
	<-measured // while the first trial still measures
	a.leave()
	b.leave()
}

// A trial that fails or is interrupted does not block others.
func TestPhasesAfterLeave(t *testing.T) {
	turns := NewPhaseScheduler()
	a, b, c := trialPhase{scheduler: turns}, trialPhase{scheduler: turns}, trialPhase{scheduler: turns}
	for _, x := range []*trialPhase{&a, &b} {
		if err := x.enterSetUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.enterMeasure(gone); err == nil {
		t.Error("measured while another trial was setting up")
	}
	a.leave()
	b.leave()
	if err := c.enterMeasure(t.Context()); err != nil { // no other trial remains
		t.Fatal(err)
	}
	var none trialPhase
	if err := none.enterSetUp(gone); err != nil {
		t.Error("a single trial waited")
	}
	none.leave()
}
