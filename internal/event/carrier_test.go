package event

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whose devices are down after events came and some of them went.
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
		gone []int // places in come, in the order in which they go
		dark []string
	}{
		"a cable is pulled":          {[]string{pull}, nil, []string{"bergen~narvik"}},
		"and put in":                 {[]string{pull}, []int{0}, nil},
		"silent is silent":           {[]string{silent}, nil, nil},
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

// A link that is pulled drops packets, too: who looks at the links sees it down.
func TestPulledIsDown(t *testing.T) {
	b := newBench(t)
	if _, err := b.world.Links.addLayer(t.Context(), change(t, b.stage, "link_down: {between: [bergen, narvik], mode: carrier}")); err != nil {
		t.Fatal(err)
	}
	if q := b.engine.at("bergen~narvik", false); !q.Down {
		t.Errorf("the link is %+v", q)
	}
}

// Devices that cannot be set leave the links as they were.
func TestCarrierThatFails(t *testing.T) {
	b := newBench(t)
	b.engine.deaf = errors.New("no such device")
	_, err := b.world.Links.addLayer(t.Context(), change(t, b.stage, "link_down: {of: narvik, mode: carrier}"))
	if !errors.Is(err, b.engine.deaf) {
		t.Errorf("error %v, want %v", err, b.engine.deaf)
	}
	if left := b.engine.changed(b.stage); len(left) > 0 {
		t.Errorf("left changed: %v", left)
	}
}

func TestCarrierHasNoDirection(t *testing.T) {
	var said []string
	Check(read(t, "- {at: 0s, link_down: {of: narvik, mode: carrier, one_way: true}}"), stage(), 0, func(path, _, _ string, _ ...any) {
		said = append(said, path)
	})
	if diff := cmp.Diff([]string{"[0].link_down.one_way"}, said); diff != "" {
		t.Error(diff)
	}
}
