package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/record"
)

// Each case runs events for one minute and compares all occurrences.
func TestScheduling(t *testing.T) {
	tests := map[string]struct {
		events string
		want   []string
	}{
		"at, for": {`- {at: 10s, for: 20s, kill: narvik}`,
			[]string{"kill narvik 10-15 reverted 35-40"}},
		"to the end": {`- {at: 10s, kill: narvik}`,
			[]string{"kill narvik 10-15 reverted 60-65"}},
		"until": {`- {at: 10s, until: 30s, pause: narvik}`,
			[]string{"pause narvik 10-10 reverted 30-30"}},
		"every": {`- {at: 10s, every: 20s, for: 5s, link_down: {between: [bergen, narvik]}}`,
			[]string{"link_down bergen~narvik 10-10 reverted 15-15", "link_down bergen~narvik 30-30 reverted 35-35",
				"link_down bergen~narvik 50-50 reverted 55-55"}},
		"every, until": {`- {at: 10s, every: 20s, until: 35s, latency: {between: [bergen, narvik], scale: 2}}`,
			[]string{"latency bergen~narvik 10-10 reverted 35-35", "latency bergen~narvik 30-30 reverted 35-35"}},
		"one after the other": {`- {at: 0s, gap: 3s, for: 10s, leave: {nodes: data, choose: next}}`,
			[]string{"leave oslo 0-5 reverted 15-20", "leave bergen 23-28 reverted 38-43", "leave narvik 46-51 active"}},
		"the next ones, to the end of the list": {`- {at: 0s, every: 10s, leave: {nodes: [bergen, narvik], choose: next}}`,
			[]string{"leave bergen 0-5 active", "leave narvik 10-15 active"}},
		"completed": {"- {at: 10s, leave: narvik}\n- {when: completed, after: 10s, join: narvik}",
			[]string{"leave narvik 10-15 active", "join narvik 25-30 active"}},
		"completed, each time": {"- {at: 0s, every: 20s, leave: {nodes: [bergen, narvik], choose: next}}\n" +
			"- {when: completed, after: 1s, join: {nodes: [bergen, narvik], choose: next}}",
			[]string{"leave bergen 0-5 active", "join bergen 6-11 active", "leave narvik 20-25 active", "join narvik 26-31 active"}},
		"reverted": {"- {at: 10s, for: 5s, pause: narvik}\n- {when: reverted, pause: bergen, for: 1s}",
			[]string{"pause narvik 10-10 reverted 15-15", "pause bergen 15-15 reverted 16-16"}},
		"membership changes are serialised": {"- {at: 10s, leave: narvik}\n- {at: 11s, leave: bergen}",
			[]string{"leave narvik 10-15 active", "leave bergen 11-20 active"}},
		"at the same time, in the order of the list": {"- {at: 1s, pause: narvik}\n- {at: 1s, pause: bergen}\n- {at: 1s, pause: oslo}",
			[]string{"pause narvik 1-1 reverted 60-60", "pause bergen 1-1 reverted 60-60", "pause oslo 1-1 reverted 60-60"}},
		"restart": {`- {at: 10s, restart: {nodes: [bergen, narvik], manner: abrupt}}`,
			[]string{"restart bergen,narvik 10-30 reverted 60-60"}},
		"start of a killed node": {"- {at: 1s, kill: narvik}\n- {at: 20s, start: narvik}",
			[]string{"kill narvik 1-6 reverted 60-60", "start narvik 20-25 reverted 60-60"}},
		"too late": {"- {at: 70s, kill: narvik}\n- {when: completed, kill: bergen}",
			[]string{"kill skipped", "kill skipped"}},
		"already gone": {"- {at: 1s, kill: narvik}\n- {at: 20s, for: 5s, kill: narvik}",
			[]string{"kill narvik 1-6 reverted 60-65", "kill narvik 20- failed 20-20"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start(tt.events)
				b.pass(time.Minute)
				if diff := cmp.Diff(tt.want, formatEvents(b.end())); diff != "" {
					t.Error(diff)
				}
				for name, h := range b.hosts {
					if h.frozen || b.cluster.down[name] {
						t.Errorf("%s was left paused (%v) or down (%v)", name, h.frozen, b.cluster.down[name])
					}
				}
				if left := b.engine.changed(b.stage); len(left) > 0 {
					t.Errorf("links still changed after the trial: %v", left)
				}
			})
		})
	}
}

func TestStepTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(`- {name: shrink, at: 10s, for: 10s, leave: narvik}`)
		b.pass(time.Minute)
		e := b.end()[0]
		for name, s := range map[string]struct {
			step *record.Step
			from float64
		}{"apply": {e.Apply, 10}, "revert": {e.Revert, 25}} {
			got := fmt.Sprintf("%.0f %.0f %.0f %.0f %d", s.step.Due.Seconds(), s.step.Began.Seconds(), s.step.Accepted.Seconds(),
				s.step.Completed.Seconds(), s.step.Bytes)
			if want := fmt.Sprintf("%.0f %.0f %.0f %.0f 1000", s.from, s.from, s.from+2, s.from+5); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if e.ID != 1 || e.Turn != 1 || e.Name != "shrink" || e.T != 10 || !strings.Contains(string(e.Spec), `"leave"`) {
			t.Errorf("event %+v", e)
		}
		var states []string
		for _, l := range b.lines {
			states = append(states, l.State)
		}
		want := []string{record.EventBegun, record.EventActive, record.EventActive, record.EventReverted}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

// A partly applied event is reverted, and recorded as failed.
func TestPartialFailureIsReverted(t *testing.T) {
	errBroken := errors.New("broken")
	tests := map[string]struct {
		events string
		fails  map[string]error
		state  string
		errs   []string
		want   []string // calls to the cluster
	}{
		"the second node of a kill": {`- {at: 1s, kill: [bergen, narvik]}`, map[string]error{"halt abrupt narvik": errBroken},
			record.EventFailed, []string{"broken"}, []string{"halt abrupt bergen", "halt abrupt narvik", "revive bergen"}},
		"the second node of a leave": {`- {at: 1s, leave: [bergen, narvik]}`, map[string]error{"leave narvik": database.ErrBusy},
			record.EventFailed, []string{"another change"}, []string{"leave bergen", "leave narvik", "join bergen"}},
		"a node removed in the meantime": {`- {at: 1s, for: 1s, kill: bergen}`, map[string]error{"revive bergen": database.ErrNotMember},
			record.EventReverted, nil, []string{"halt abrupt bergen", "revive bergen"}},
		"the revert": {`- {at: 1s, for: 1s, kill: bergen}`, map[string]error{"revive bergen": errBroken},
			record.EventFailed, []string{"revert: ", "broken"}, []string{"halt abrupt bergen", "revive bergen"}},
		"a failure and its revert": {`- {at: 1s, kill: [bergen, narvik]}`,
			map[string]error{"halt abrupt narvik": errBroken, "revive bergen": database.ErrBusy},
			record.EventFailed, []string{"broken", "another change"}, []string{"halt abrupt bergen", "halt abrupt narvik", "revive bergen"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.cluster.fails = tt.fails
				b.start(tt.events)
				b.pass(time.Minute)
				e := b.end()[0]
				if e.State != tt.state {
					t.Errorf("state %q, want %q", e.State, tt.state)
				}
				for _, part := range tt.errs {
					if !strings.Contains(e.Error, part) {
						t.Errorf("error %q lacks %q", e.Error, part)
					}
				}
				if diff := cmp.Diff(tt.want, b.cluster.said); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A change of membership that the end of the trial interrupts is not reverted.
func TestEndOfTrialInterruptsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.cluster.takes = time.Hour
		b.start("- {at: 10s, leave: narvik}\n- {at: 11s, leave: bergen}")
		b.pass(time.Minute)
		events := b.end()
		for _, e := range events {
			if e.State != record.EventFailed || !strings.Contains(e.Error, "the trial ended") || e.Revert != nil {
				t.Errorf("%s: %s, revert %v", formatEvent(e), e.Error, e.Revert)
			}
		}
		if diff := cmp.Diff([]string{"leave narvik"}, b.cluster.said); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDoneAfterLastEvent(t *testing.T) {
	tests := map[string]struct {
		events string
		at     time.Duration // 0: never
	}{
		"true at the end":   {`- {at: 10s, pause: narvik}`, 10 * time.Second},
		"reverted":          {`- {at: 10s, for: 10s, pause: narvik}`, 20 * time.Second},
		"followed":          {"- {at: 10s, for: 10s, pause: narvik}\n- {when: reverted, after: 5s, leave: narvik}", 30 * time.Second},
		"a skipped event":   {"- {at: 10s, pause: narvik}\n- {at: 20s, pause: narvik}\n- {when: completed, pause: oslo}", 20 * time.Second},
		"without end":       {`- {at: 10s, every: 10s, for: 5s, pause: narvik}`, 0},
		"to the list's end": {`- {at: 10s, gap: 1s, for: 10s, leave: {nodes: [bergen, narvik], choose: next}}`, 51 * time.Second},
		"no events":         {`[]`, time.Nanosecond},
		"steady in time":    {`- {when: steady, pause: narvik}`, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				zero := time.Now()
				b.start(tt.events)
				select {
				case <-b.runner.Done():
					if got := max(time.Since(zero), time.Nanosecond); tt.at == 0 || got != tt.at {
						t.Errorf("quiet after %v, want %v", got, tt.at)
					}
				case <-time.After(time.Minute):
					if tt.at != 0 {
						t.Error("never quiet")
					}
				}
				b.end()
			})
		})
	}
}

func TestSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start("- {when: steady, for: 5s, kill: narvik}\n- {when: steady, after: 2s, kill: bergen}")
		goodput := func(s int) float64 {
			switch {
			case s < 10:
				return float64(100 + 20*s) // ramp-up
			case s == 30:
				return 0
			}
			return 300
		}
		for s := range 59 {
			b.pass(time.Second)
			b.runner.ObserveGoodput(int64(s), goodput(s))
		}
		b.pass(time.Second)
		// The mean of seconds 7 to 11 is 276, that of 12 to 16 is 300. The kill ends at 32, and
		// later seconds count.
		want := []string{"kill narvik 17-22 reverted 27-32", "kill bergen 44-49 reverted 60-65"}
		if diff := cmp.Diff(want, formatEvents(b.end())); diff != "" {
			t.Error(diff)
		}
	})
}

// The seed fixes every random choice, independent of timing.
func TestChurn(t *testing.T) {
	const churn = `- {at: 5s, until: 10m, churn: {every: 30s, lasting: 20s, most: 1}, kill: {nodes: data, choose: random}}`
	draws := func(takes time.Duration) (draws []string) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.cluster.takes = takes
			b.start(churn)
			b.pass(11 * time.Minute)
			for _, e := range b.end() {
				draws = append(draws, fmt.Sprintf("%.3f %v", e.Apply.Due.Seconds(), e.Targets))
				if e.State != record.EventReverted {
					t.Errorf("%s: %s", formatEvent(e), e.Error)
				}
			}
		})
		return draws
	}
	quick := draws(0)
	if diff := cmp.Diff(quick, draws(100*time.Millisecond)); diff != "" {
		t.Errorf("random choices depend on the duration of changes:\n%s", diff)
	}
	// 20 occurrences are due in ten minutes, and some of them overlap: 8 to 20 happen.
	if n := len(quick); n < 5 || n > 20 {
		t.Errorf("%d happened: %v", n, quick)
	}
}

// Late returns how late a step began.
func TestLate(t *testing.T) {
	due := record.Moment{NS: 5e9}
	began := record.Moment{NS: 5e9 + 3e6}
	if got := (&record.Step{Due: due, Began: &began}).Late(); got != 3*time.Millisecond {
		t.Errorf("late by %v, want 3ms", got)
	}
}

func TestRecordErrorEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		full := errors.New("the disk is full")
		r, err := NewRunner(Config{Events: read(t, "- {at: 1s, pause: narvik}\n- {at: 50s, pause: oslo}"), Stage: b.stage, World: b.world,
			Record: func(record.Event) error { return full }})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context(), time.Now()); !errors.Is(err, full) {
			t.Errorf("error %v, want %v", err, full)
		}
		if b.hosts["narvik"].frozen {
			t.Error("narvik is still paused")
		}
	})
}

// Fired events are recorded and reverted like those of the experiment.
func TestFire(t *testing.T) {
	tests := map[string]struct{ list, fire, want string }{
		"with a duration": {``, `{"link_down": {"between": ["bergen", "narvik"]}, "for": "20s"}`,
			"link_down bergen~narvik 10-10 reverted 30-30"},
		"to the end": {``, `{kill: narvik}`, "kill narvik 10-15 reverted 60-65"},
		"concurrent with the list": {`- {at: 5s, for: 10s, latency: {between: [bergen, narvik], scale: 2}}`,
			`{"latency": {"between": ["bergen", "narvik"], "scale": 3}, "for": "1m"}`, "latency bergen~narvik 10-10 reverted 60-60"},
		"below a waiting event": {`- {when: steady, pause: oslo}`, `{pause: narvik, for: 1s}`, "pause narvik 10-10 reverted 11-11"},
		"already in effect":     {`- {at: 1s, pause: narvik}`, `{pause: narvik, for: 1s}`, "pause narvik 10- failed 10-10"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := Parse([]byte(tt.fire))
				if err != nil {
					t.Fatal(err)
				}
				b := newBench(t)
				if err := CheckFired(e, b.stage, "double", database.Capabilities{Restart: true}); err != nil {
					t.Fatal(err)
				}
				b.start(tt.list)
				b.pass(10 * time.Second)
				began, err := b.runner.Fire(t.Context(), e, record.SourceUI)
				if err != nil {
					t.Fatal(err)
				}
				if began.Source != record.SourceUI || began.Entry != -1 || began.State != record.EventBegun || began.T != 10 {
					t.Errorf("the event started as %+v", began)
				}
				b.pass(50 * time.Second)
				var mine []record.Event
				for _, e := range b.end() {
					if e.Source != "" {
						mine = append(mine, e)
					}
				}
				if diff := cmp.Diff([]string{tt.want}, formatEvents(mine)); diff != "" {
					t.Error(diff)
				}
				if left := b.engine.changed(b.stage); len(left) > 0 {
					t.Errorf("links still changed after the trial: %v", left)
				}
				if _, err := b.runner.Fire(t.Context(), e, record.SourceUI); !errors.Is(err, ErrNotRunning) {
					t.Errorf("firing after the end: %v", err)
				}
			})
		})
	}
}

func TestInvalidFiredEvents(t *testing.T) {
	tests := map[string]struct{ event, want string }{
		"no kind":           {`{for: 2s}`, "kind of event missing"},
		"two kinds":         {`{pause: oslo, kill: oslo}`, "exclude"},
		"an unknown kind":   {`{explode: oslo}`, "explode"},
		"an unknown node":   {`{pause: olso}`, `no node or site "olso"`},
		"an unknown link":   {`{link_down: {between: [oslo, nowhere]}}`, `no node or site "nowhere"`},
		"later":             {`{at: 3s, pause: oslo}`, "starts at once"},
		"repeated":          {`{every: 3s, pause: oslo, for: 1s}`, "starts at once"},
		"not text":          {"\x00\x01", ""},
		"cannot restart":    {`{kill: oslo, for: 5s}`, "cannot restart"},
		"cannot be resized": {`{leave: oslo}`, "cannot remove members"},
		"a missing disk":    {`{disk_full: {nodes: oslo}}`, "disk"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Parse([]byte(tt.event))
			if err == nil {
				err = CheckFired(e, stage(), "double", database.Capabilities{})
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error()+advice.Of(err), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
