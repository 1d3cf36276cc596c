package event

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/record"
)

// What is fired by hand is recorded, and taken back, as what the experiment lists.
func TestFire(t *testing.T) {
	tests := map[string]struct{ list, fire, want string }{
		"for a time":           {``, `{"link_down": {"between": ["bergen", "narvik"]}, "for": "20s"}`, "link_down bergen~narvik 10-10 reverted 30-30"},
		"to the end":           {``, `{kill: narvik}`, "kill narvik 10-15 reverted 60-65"},
		"beside the list":      {`- {at: 5s, for: 10s, latency: {between: [bergen, narvik], scale: 2}}`, `{"latency": {"between": ["bergen", "narvik"], "scale": 3}, "for": "1m"}`, "latency bergen~narvik 10-10 reverted 60-60"},
		"below one that waits": {`- {when: steady, pause: oslo}`, `{pause: narvik, for: 1s}`, "pause narvik 10-10 reverted 11-11"},
		"what is so already":   {`- {at: 1s, pause: narvik}`, `{pause: narvik, for: 1s}`, "pause narvik 10- failed 10-10"},
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
					t.Errorf("it began as %+v", began)
				}
				b.pass(50 * time.Second)
				var mine []record.Event
				for _, e := range b.end() {
					if e.Source != "" {
						mine = append(mine, e)
					}
				}
				if diff := cmp.Diff([]string{tt.want}, tellAll(mine)); diff != "" {
					t.Error(diff)
				}
				if left := b.engine.changed(b.stage); len(left) > 0 {
					t.Errorf("links were left changed: %v", left)
				}
				if _, err := b.runner.Fire(t.Context(), e, record.SourceUI); !errors.Is(err, ErrNotRunning) {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}

func TestWhatCannotBeFired(t *testing.T) {
	tests := map[string]struct{ event, want string }{
		"no kind":           {`{for: 2s}`, "nothing says what happens"},
		"two kinds":         {`{pause: oslo, kill: oslo}`, "exclude"},
		"an unknown kind":   {`{explode: oslo}`, "explode"},
		"an unknown node":   {`{pause: olso}`, `no node or site "olso"`},
		"an unknown link":   {`{link_down: {between: [oslo, nowhere]}}`, `no node or site "nowhere"`},
		"later":             {`{at: 3s, pause: oslo}`, "happens at once"},
		"again and again":   {`{every: 3s, pause: oslo, for: 1s}`, "happens at once"},
		"not text":          {"\x00\x01", ""},
		"cannot restart":    {`{kill: oslo, for: 5s}`, "cannot be started again"},
		"cannot be resized": {`{leave: oslo}`, "cannot let members leave"},
		"a disk to be made": {`{disk_full: {nodes: oslo}}`, "disk"},
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
