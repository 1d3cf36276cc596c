package event

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
)

// change returns the layer of an event.
func change(t *testing.T, s Layout, event string) *layer {
	t.Helper()
	e := read(t, "- {at: 0s, "+event+"}")[0]
	a := e.Spec.spec.draw(s, 0, nil, rand.New(rand.NewPCG(1, 2)))
	switch on := a.(type) {
	case *linkAction:
		return &on.layer
	case *partitionAction:
		return &on.layer
	}
	t.Fatalf("%s changes no links", event)
	return nil
}

func TestLayeredLinkSettings(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		events []string
		want   link.Quality // from bergen to narvik; its base is 40 ms, 100 Mbit/s
	}{
		"latency set": {[]string{"latency: {between: [bergen, narvik], set: 5ms}"}, link.Quality{Latency: 5 * ms, Bandwidth: 100e6}},
		"latencies add up": {[]string{"latency: {add: 20ms}", "latency: {of: narvik, add: 1ms}"},
			link.Quality{Latency: 61 * ms, Bandwidth: 100e6}},
		"in order of arrival": {[]string{"latency: {scale: 2}", "latency: {add: 1ms}", "latency: {scale: 2}"},
			link.Quality{Latency: 162 * ms, Bandwidth: 100e6}},
		"bandwidth": {[]string{"bandwidth: {set: 10mbit}", "bandwidth: {scale: 0.5}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 5e6}},
		"independent losses": {[]string{"loss: {set: 10%}", "loss: {add: 10%}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Loss: 0.19}},
		"losses in bursts": {[]string{"loss: {set: {burst: {mean: 20%, length: 4}}}", "loss: {add: 10%}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Loss: 0.1, Burst: &link.GilbertElliott{P: 0.0625, R: 0.25, K: 1}}},
		"bursts replaced": {[]string{"loss: {set: {burst: {p: 1%, r: 10%}}}", "loss: {set: 1%}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Loss: 0.01}},
		"jitter": {[]string{"jitter: {set: 2ms, distribution: uniform}", "jitter: {add: 1ms}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Jitter: 3 * ms, Distribution: link.Uniform}},
		"down":     {[]string{"link_down: {of: bergen}"}, link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Down: true}},
		"up again": {[]string{"link_down: {of: bergen}", "link_up: {}"}, link.Quality{Latency: 40 * ms, Bandwidth: 100e6}},
		"down after up": {[]string{"link_up: {}", "partition: {groups: [[bergen, oslo], [narvik]]}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Down: true}},
		"only the reverse direction": {[]string{"latency: {between: [narvik, bergen], set: 5ms, one_way: true}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6}},
		"one way": {[]string{"loss: {of: bergen, set: 100%, one_way: true}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Loss: 1}},
		"a partition, one way": {[]string{"partition: {groups: [[bergen], [narvik]], one_way: true}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Down: true}},
		"from the other side": {[]string{"partition: {groups: [[narvik], [bergen]], one_way: true}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6}},
		"both in one group": {[]string{"partition: {groups: [[narvik, bergen], [oslo]]}"},
			link.Quality{Latency: 40 * ms, Bandwidth: 100e6}},
		"split into single nodes": {[]string{"partition: {split: 3}"}, link.Quality{Latency: 40 * ms, Bandwidth: 100e6, Down: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var layers []*layer
			for _, e := range tt.events {
				l := change(t, b.stage, e)
				layers = append(layers, l)
				if _, err := b.world.Links.addLayer(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			got := b.engine.at("bergen~narvik", false)
			got.Loss = math.Round(got.Loss*1e9) / 1e9
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for _, l := range layers {
				if _, err := b.world.Links.removeLayer(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			if left := b.engine.changed(b.stage); len(left) > 0 {
				t.Errorf("links still changed: %v", left)
			}
		})
	}
}

// The settings depend only on the remaining layers, in any order of additions and removals. Without
// layers the settings are the base.
func TestLayersRemovedInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	events := []string{"latency: {add: 20ms}", "latency: {of: narvik, scale: 3}", "loss: {add: 5%}", "link_down: {of: oslo}",
		"link_up: {of: bergen}", "bandwidth: {between: [bergen, narvik], scale: 0.1}"}
	for range 200 {
		b := newBench(t)
		var in, rest []*layer
		for _, i := range r.Perm(len(events)) {
			l := change(t, b.stage, events[i])
			if _, err := b.world.Links.addLayer(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			in = append(in, l)
		}
		for _, i := range r.Perm(len(in)) {
			if r.IntN(2) == 0 {
				rest = append(rest, in[i])
				continue
			}
			if _, err := b.world.Links.removeLayer(t.Context(), in[i]); err != nil {
				t.Fatal(err)
			}
		}
		fresh := newBench(t)
		for _, l := range in { // remaining layers, in their order
			for _, stays := range rest {
				if l == stays {
					if _, err := fresh.world.Links.addLayer(t.Context(), l); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if diff := cmp.Diff(fresh.engine.now, b.engine.now, cmp.AllowUnexported(direction{})); diff != "" {
			t.Fatal(diff)
		}
		for _, l := range rest {
			if _, err := b.world.Links.removeLayer(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		if left := b.engine.changed(b.stage); len(left) > 0 {
			t.Fatalf("links still changed: %v", left)
		}
	}
}

// Drift changes the base, below the layers of events.
func TestDriftBelowEvents(t *testing.T) {
	b := newBench(t)
	l := change(t, b.stage, "latency: {scale: 2}")
	if _, err := b.world.Links.addLayer(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	far := link.Quality{Latency: time.Second}
	if _, err := b.world.Links.SetBase(t.Context(), []link.Change{{ID: "bergen~narvik", AB: &far}}); err != nil {
		t.Fatal(err)
	}
	if got := b.engine.at("bergen~narvik", false).Latency; got != 2*time.Second {
		t.Errorf("latency %v, want 2s", got)
	}
	if got := b.engine.at("bergen~narvik", true).Latency; got != 80*time.Millisecond {
		t.Errorf("reverse direction: latency %v, want 80ms", got)
	}
	if _, err := b.world.Links.removeLayer(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if got := b.engine.at("bergen~narvik", false); got != far {
		t.Errorf("after the event: got %+v, want %+v", got, far)
	}
}

// A failed change is not in force, and the next change of the link applies it.
func TestFailedLinkChangeIsRetried(t *testing.T) {
	b := newBench(t)
	l := change(t, b.stage, "link_down: {of: oslo}")
	b.engine.fail = errors.New("the emulator has exited")
	if _, err := b.world.Links.addLayer(t.Context(), l); !errors.Is(err, b.engine.fail) {
		t.Errorf("error %v, want %v", err, b.engine.fail)
	}
	b.engine.fail = nil
	if _, err := b.world.Links.addLayer(t.Context(), change(t, b.stage, "latency: {add: 1ms}")); err != nil {
		t.Fatal(err)
	}
	if q := b.engine.at("oslo~bergen", false); q.Down || q.Latency != 41*time.Millisecond {
		t.Errorf("the link is %+v", q)
	}
}

// The devices that are down after events were added and removed.
func TestCarrier(t *testing.T) {
	const (
		pull   = "link_down: {between: [bergen, narvik], mode: carrier}"
		again  = "link_down: {of: narvik, mode: carrier}"
		silent = "link_down: {of: bergen}"
		up     = "link_up: {between: [bergen, narvik]}"
		slow   = "latency: {add: 5ms}"
	)
	tests := map[string]struct {
		come []string
		gone []int // indexes in come, in the order of removal
		dark []string
	}{
		"pulled":                     {[]string{pull}, nil, []string{"bergen~narvik"}},
		"pulled and put in":          {[]string{pull}, []int{0}, nil},
		"silent":                     {[]string{silent}, nil, nil},
		"silent over pulled":         {[]string{pull, silent}, nil, []string{"bergen~narvik"}},
		"pulled twice, put in once":  {[]string{pull, again}, []int{1}, []string{"bergen~narvik"}},
		"pulled twice, in any order": {[]string{pull, again}, []int{0, 1}, nil},
		"up over pulled":             {[]string{pull, up}, nil, nil},
		"up goes":                    {[]string{pull, up}, []int{1}, []string{"bergen~narvik"}},
		"pulled after up":            {[]string{up, pull}, nil, []string{"bergen~narvik"}},
		"other changes":              {[]string{slow, pull, slow}, []int{2, 0}, []string{"bergen~narvik"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var layers []*layer
			for _, e := range tt.come {
				l := change(t, b.stage, e)
				layers = append(layers, l)
				if _, err := b.world.Links.addLayer(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range tt.gone {
				if _, err := b.world.Links.removeLayer(t.Context(), layers[i]); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.dark, slices.Sorted(maps.Keys(b.engine.dark))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A link without carrier also drops packets, so that it is shown as down.
func TestCarrierLossDropsPackets(t *testing.T) {
	b := newBench(t)
	if _, err := b.world.Links.addLayer(t.Context(), change(t, b.stage, "link_down: {between: [bergen, narvik], mode: carrier}")); err != nil {
		t.Fatal(err)
	}
	if q := b.engine.at("bergen~narvik", false); !q.Down {
		t.Errorf("the link is %+v", q)
	}
}

// If devices cannot be set, the links keep their settings.
func TestCarrierError(t *testing.T) {
	b := newBench(t)
	b.engine.deaf = errors.New("no such device")
	_, err := b.world.Links.addLayer(t.Context(), change(t, b.stage, "link_down: {of: narvik, mode: carrier}"))
	if !errors.Is(err, b.engine.deaf) {
		t.Errorf("error %v, want %v", err, b.engine.deaf)
	}
	if left := b.engine.changed(b.stage); len(left) > 0 {
		t.Errorf("links still changed: %v", left)
	}
}

func TestCarrierRejectsOneWay(t *testing.T) {
	var said []string
	Check(read(t, "- {at: 0s, link_down: {of: narvik, mode: carrier, one_way: true}}"), stage(), 0, func(path, _, _ string, _ ...any) {
		said = append(said, path)
	})
	if diff := cmp.Diff([]string{"[0].link_down.one_way"}, said); diff != "" {
		t.Error(diff)
	}
}
