package topology

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/link"
)

func TestScale(t *testing.T) {
	base, err := build(t, "sites: [{name: A, nodes: 2}, B]\ndefaults: {rtt: 10ms, jitter: 1ms}", nil)
	if err != nil {
		t.Fatal(err)
	}
	near := Scale(base, 0.2)
	if got := quality(near, "A-1~B")[0]; got != (link.Quality{Latency: time.Millisecond, Jitter: 200 * time.Microsecond}) {
		t.Errorf("between sites: %+v", got)
	}
	if got := quality(near, "A-1~A-2")[0].Latency; got != defaultSiteRTT/10 {
		t.Errorf("within a site: %v", got)
	}
	if got := quality(base, "A-1~B")[0].Latency; got != 5*time.Millisecond {
		t.Errorf("scaling changed the original topology to %v", got)
	}
}

func TestWithClient(t *testing.T) {
	azure, err := Load("azure8")
	if err != nil {
		t.Fatal(err)
	}
	got, err := WithClient(azure, "Singapore")
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Nodes[8]; n != (Node{Name: "client", Site: "Singapore", Role: Client}) {
		t.Errorf("client is %+v", n)
	}
	if len(got.Links) != 28+8 || len(azure.Links) != 28 {
		t.Errorf("%d links, want 36, and 28 without the client", len(got.Links))
	}
	if q := quality(got, "client~Melbourne"); q != quality(got, "Melbourne~Singapore") {
		t.Errorf("to Melbourne: %+v", q)
	}
	if q := quality(got, "client~Singapore")[0]; q != (link.Quality{Latency: 250 * time.Microsecond}) {
		t.Errorf("to the data node in Singapore: %+v", q)
	}

	odd, err := build(t, "nodes: [x, y]\nlinks: [{between: [x, y], rtt: 8ms, forward: {bandwidth: 1mbit}}]", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err = WithClient(odd, "y")
	if err != nil {
		t.Fatal(err)
	}
	const half = 4 * time.Millisecond
	if q := quality(got, "client~x"); q != [2]link.Quality{{Latency: half}, {Latency: half, Bandwidth: 1e6}} {
		t.Errorf("a client at y reaches x by %+v", q)
	}

	for site, hint := range map[string]string{"Singapur": `did you mean "Singapore"?`, "Atlantis": "sites with data nodes are"} {
		if _, err := WithClient(azure, site); !errors.Is(err, ErrClient) || !strings.Contains(advice.Of(err), hint) {
			t.Errorf("%s: error %v, advice %q", site, err, advice.Of(err))
		}
	}
	own := azure
	own.Nodes = append([]Node{{Name: "me", Site: "Pune", Role: Client}}, azure.Nodes...)
	if got, err := WithClient(own, ""); err != nil || len(got.Nodes) != 9 {
		t.Errorf("a topology with its own client: %d nodes, %v", len(got.Nodes), err)
	}
}

func TestMobility(t *testing.T) {
	base, err := build(t, "sites: [{name: A, lat: 0, lon: 0}, {name: B, lat: 0, lon: 1}, {name: C, lat: 1, lon: 0}]", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := Mobility{Bandwidth: 1e9, Reference: 100, Exponent: 1, Detour: 1.5, Sites: []Track{
		{Site: "B", Waypoints: []Waypoint{{At: 0, Lat: 0, Lon: 0.5}, {At: 10e9, Lat: 0, Lon: 10}}},
	}}
	if ps := m.Check(base); len(ps) > 0 {
		t.Fatal(ps)
	}
	profiles := m.LinkProfiles(base, 0.5)
	if len(profiles) != 2 || profiles["A~C"] != nil {
		t.Fatalf("profiles of %d links, want those of B", len(profiles))
	}
	degree := greatCircleKm(point{0, 0}, point{0, 1})
	for _, tt := range []struct {
		at  time.Duration
		lon float64
	}{{0, 0.5}, {5 * time.Second, 5.25}, {10 * time.Second, 10}, {time.Minute, 10}} {
		q := profiles["A~B"].At(tt.at)
		km := degree * tt.lon
		if want := propagationDelay(km, 1.5) / 2; (q.Latency - want).Abs() > time.Microsecond {
			t.Errorf("at %v: latency %v, want %v", tt.at, q.Latency, want)
		}
		if want := 1e9 * min(1, 100/km); math.Abs(float64(q.Bandwidth)-want) > 1 {
			t.Errorf("at %v: bandwidth %d, want %.0f", tt.at, q.Bandwidth, want)
		}
	}
}
