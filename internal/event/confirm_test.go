package event

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
	"skerry/internal/record"
)

const testLink = "bergen~narvik"

// observer is an emulator whose account of one link is set by the test. Other links carry nothing.
type observer struct {
	*engine
	began time.Time
	mu    sync.Mutex
	reads []time.Duration // times at which the account was read
	// at returns the account of both directions of testLink at a time.
	at func(time.Duration) link.Account
}

func (o *observer) stats(_ context.Context, ids ...string) ([]link.Stats, error) {
	since := time.Since(o.began)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads = append(o.reads, since)
	if len(ids) == 0 {
		ids = []string{testLink}
	}
	var all []link.Stats
	for _, id := range ids {
		s := link.Stats{ID: id}
		s.AB.Account = o.at(since)
		s.BA.Account = s.AB.Account
		all = append(all, s)
	}
	return all, nil
}

func watched(t *testing.T, b *bench, at func(time.Duration) link.Account) *observer {
	t.Helper()
	o := &observer{engine: b.engine, began: time.Now(), at: at}
	if err := b.world.Links.TrackAccounts(t.Context(), o.stats); err != nil {
		t.Fatal(err)
	}
	o.reads = nil
	return o
}

// The links have a latency of 40 ms, so the account is read 90, 140 and 240 ms after a change.
func TestConfirm(t *testing.T) {
	const ms = time.Millisecond
	// after returns an account with one more change, confirmed after one delay, with one packet per
	// millisecond after another.
	after := func(confirmed, packets time.Duration) func(time.Duration) link.Account {
		return func(since time.Duration) link.Account {
			a := link.Account{Known: true, Changes: 7, Confirmed: 7}
			if since == 0 {
				return a
			}
			a.Changes++
			if since >= confirmed {
				a.Confirmed++
			}
			if since > packets {
				a.Packets = uint64((since - packets) / ms)
			}
			return a
		}
	}
	never := time.Hour
	tests := map[string]struct {
		account func(time.Duration) link.Account
		reads   []time.Duration
		want    record.Observed // without times
	}{
		"in effect immediately": {after(80*ms, 0), []time.Duration{90 * ms}, record.Observed{Directions: 2, Confirmed: 2}},
		"in effect later":       {after(200*ms, 0), []time.Duration{90 * ms, 140 * ms, 240 * ms}, record.Observed{Directions: 2, Confirmed: 2}},
		"no packet":             {after(never, never), []time.Duration{90 * ms, 140 * ms, 240 * ms}, record.Observed{Directions: 2, NoPacket: 2}},
		// Packets in flight at the change arrive within 40 ms.
		"no packet except those in flight": {func(since time.Duration) link.Account {
			a := after(never, never)(since)
			a.Packets = 50
			return a
		}, []time.Duration{90 * ms, 140 * ms, 240 * ms}, record.Observed{Directions: 2, NoPacket: 2}},
		"not in effect": {after(never, 0), []time.Duration{90 * ms, 140 * ms, 240 * ms},
			record.Observed{Directions: 2, Unconfirmed: []record.Unconfirmed{{Link: testLink, Packets: 150},
				{Link: testLink, Back: true, Packets: 150}}}},
		"changed again": {func(since time.Duration) link.Account {
			a := after(never, 0)(since)
			if since > 100*ms {
				a.Changes, a.Confirmed = a.Changes+1, a.Changes+1
			}
			return a
		}, []time.Duration{90 * ms, 140 * ms}, record.Observed{Directions: 2, Superseded: 2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				o := watched(t, b, tt.account)
				faster := link.Quality{Latency: 10 * ms, Bandwidth: 100e6}
				u, err := b.world.Links.SetBase(t.Context(), []link.Change{{ID: testLink, AB: &faster, BA: &faster}})
				if err != nil {
					t.Fatal(err)
				}
				got := b.world.Links.Confirm(t.Context(), o.began, u)
				if !slices.Equal(o.reads, tt.reads) {
					t.Errorf("read after %v, want %v", o.reads, tt.reads)
				}
				if (got.InEffect != nil) != (tt.want.Confirmed > 0) {
					t.Errorf("in effect at %v", got.InEffect)
				}
				got.Set, got.InEffect = record.Moment{}, nil
				slices.SortFunc(got.Unconfirmed, func(a, b record.Unconfirmed) int {
					if a.Back {
						return 1
					}
					return -1
				})
				if diff := cmp.Diff(tt.want, *got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// An emulator that does not see packets is not read, and nothing is confirmed.
func TestConfirmWithoutAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := watched(t, b, func(time.Duration) link.Account { return link.Account{} })
		u, err := b.world.Links.SetBase(t.Context(), []link.Change{{ID: testLink, AB: &link.Quality{Latency: time.Millisecond}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.world.Links.Confirm(t.Context(), o.began, u); got != nil || len(o.reads) > 0 {
			t.Errorf("got %+v after %d readings", got, len(o.reads))
		}
	})
}

// Steps are confirmed in the background. The revert at the end of the trial is not confirmed and
// does not wait.
func TestEventsAreConfirmed(t *testing.T) {
	for name, tt := range map[string]struct {
		events string
		stop   time.Duration
		want   string
		ends   time.Duration
	}{
		"applied and reverted": {`- {at: 1s, for: 2s, latency: {between: [bergen, narvik], add: 20ms}}`, 10 * time.Second,
			"reverted, apply 2, revert 2", 10 * time.Second},
		// Reverted before the account was read, so the later change counts.
		"shorter than a confirmation": {`- {at: 1s, for: 50ms, latency: {between: [bergen, narvik], add: 20ms}}`,
			10 * time.Second, "reverted, apply superseded, revert 2", 10 * time.Second},
		"until the end of the trial": {`- {at: 1s, latency: {between: [bergen, narvik], add: 20ms}}`, 10 * time.Second,
			"reverted, apply 2, revert -", 10 * time.Second},
		"at the trial's end": {`- {at: 1s, latency: {between: [bergen, narvik], add: 20ms}}`, 1050 * time.Millisecond,
			"reverted, apply -, revert -", 1050 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				began := time.Now()
				watched(t, b, func(time.Duration) link.Account {
					b.engine.mu.Lock()
					defer b.engine.mu.Unlock()
					return link.Account{Known: true, Changes: uint64(b.engine.sets), Confirmed: uint64(b.engine.sets)}
				})
				b.start(tt.events)
				b.pass(tt.stop)
				e := b.end()[0]
				if took := time.Since(began); took != tt.ends {
					t.Errorf("ended after %v", took)
				}
				seen := func(s *record.Step) string {
					switch {
					case s == nil || s.Observed == nil:
						return "-"
					case s.Observed.Superseded > 0:
						return "superseded"
					}
					return fmt.Sprint(s.Observed.Confirmed)
				}
				if got := fmt.Sprintf("%s, apply %s, revert %s", e.State, seen(e.Apply), seen(e.Revert)); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if last := b.lines[len(b.lines)-1]; seen(last.Apply) != seen(e.Apply) || seen(last.Revert) != seen(e.Revert) {
					t.Errorf("the last line has apply %s, revert %s", seen(last.Apply), seen(last.Revert))
				}
			})
		})
	}
}
