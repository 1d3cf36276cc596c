package topology

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/link"
)

// Mobility is sites that move. The latency between two sites follows from their distance,
// as it does for coordinates; the bandwidth falls with it:
//
//	bandwidth │────────╮
//	          │        ╰╮          bandwidth x (reference / distance)^exponent
//	          │          ╰──╮
//	          │              ╰────────
//	          └────────┴────────────── distance
//	                reference
//
// The exponent 1 is what one loss-bound TCP stream sees, whose rate goes with 1 / RTT
// (Mathis et al., 1997); 2 is the free-space loss of a radio link's power.
type Mobility struct {
	// Sites are the moving ones; all others stay at their coordinates.
	Sites []Track `yaml:"sites" json:"sites" jsonschema:"required,minItems=1"`
	// Bandwidth of a link between sites up to reference_km apart.
	Bandwidth unit.Bandwidth `yaml:"bandwidth" json:"bandwidth" jsonschema:"default=1gbit"`
	// Reference is the distance in km beyond which bandwidth falls.
	Reference float64 `yaml:"reference_km" json:"reference_km" jsonschema:"default=100,exclusiveMinimum=0"`
	// Exponent is how fast it falls: bandwidth x (reference / distance)^exponent.
	Exponent float64 `yaml:"exponent" json:"exponent" jsonschema:"default=1,minimum=0,maximum=4"`
	// Detour is how much longer the way of the signal is than the great circle.
	Detour float64 `yaml:"detour" json:"detour" jsonschema:"default=1.5,minimum=1,maximum=10"`
}

// Track is the way of one site.
type Track struct {
	// Site that moves.
	Site string `yaml:"site" json:"site" jsonschema:"required"`
	// Waypoints are where it is when; in between it travels the great circle at an even
	// pace, before the first and after the last it stays.
	Waypoints []Waypoint `yaml:"waypoints" json:"waypoints" jsonschema:"required,minItems=1"`
}

// Waypoint is a place at a time.
type Waypoint struct {
	// At is the time.
	At unit.Duration `yaml:"at" json:"at" jsonschema:"required"`
	// Lat is the latitude in degrees, north positive.
	Lat float64 `yaml:"lat" json:"lat" jsonschema:"required,minimum=-90,maximum=90"`
	// Lon is the longitude in degrees, east positive.
	Lon float64 `yaml:"lon" json:"lon" jsonschema:"required,minimum=-180,maximum=180"`
}

// minBandwidth in bit/s keeps a link from being starved altogether by distance: 0
// would mean no limit.
const minBandwidth = 1000

// At is where the track leads at a time.
func (t Track) At(at time.Duration) Point {
	w := t.Waypoints
	i := sort.Search(len(w), func(i int) bool { return time.Duration(w[i].At) > at })
	switch i {
	case 0:
		return Point{w[0].Lat, w[0].Lon}
	case len(w):
		return Point{w[i-1].Lat, w[i-1].Lon}
	}
	a, b := w[i-1], w[i]
	f := float64(at-time.Duration(a.At)) / float64(b.At-a.At)
	return Between(Point{a.Lat, a.Lon}, Point{b.Lat, b.Lon}, f)
}

// Check holds a mobility against the topology that it moves. Paths are relative to the mobility.
func (m Mobility) Check(t Topology) (ps strict.Problems) {
	moving := map[string]bool{}
	for i, track := range m.Sites {
		path := fmt.Sprintf("sites[%d]", i)
		switch {
		case !slices.ContainsFunc(t.Sites, func(s Site) bool { return s.Name == track.Site }):
			ps = append(ps, strict.Problem{Path: path + ".site", Message: fmt.Sprintf("%q is no site of the topology", track.Site)})
		case moving[track.Site]:
			ps = append(ps, strict.Problem{Path: path + ".site", Message: fmt.Sprintf("%s moves twice", track.Site), Hint: "put all its waypoints into one track"})
		}
		moving[track.Site] = true
		for k := 1; k < len(track.Waypoints); k++ {
			if track.Waypoints[k].At <= track.Waypoints[k-1].At {
				ps = append(ps, strict.Problem{Path: fmt.Sprintf("%s.waypoints[%d].at", path, k), Message: "a waypoint must be later than the one before it"})
			}
		}
	}
	for _, s := range t.Sites {
		if !s.Located && !moving[s.Name] {
			ps = append(ps, strict.Problem{Path: "sites", Message: fmt.Sprintf("%s has no coordinates", s.Name), Hint: "give the site lat and lon, or waypoints"})
		}
	}
	return ps
}

// Profiles returns the quality of every link that has a moving site at one of its ends,
// over time. Latency and bandwidth follow from distance; the rest stays as in t. Latencies
// are times scale.
func (m Mobility) Profiles(t Topology, scale float64) map[string]link.Profile {
	place := make(map[string]func(time.Duration) Point, len(t.Sites))
	for _, s := range t.Sites {
		place[s.Name] = func(time.Duration) Point { return Point{s.Lat, s.Lon} }
	}
	moving := map[string]bool{}
	for _, track := range m.Sites {
		moving[track.Site] = true
		place[track.Site] = track.At
	}
	site := make(map[string]string, len(t.Nodes))
	for _, n := range t.Nodes {
		site[n.Name] = n.Site
	}
	profiles := map[string]link.Profile{}
	for _, l := range t.Links {
		a, b := site[l.A], site[l.B]
		if a == b || !moving[a] && !moving[b] {
			continue
		}
		profiles[l.ID] = link.ProfileFunc(func(at time.Duration) link.Quality {
			km := Distance(place[a](at), place[b](at))
			q := l.AB
			q.Latency = Propagation(km, m.Detour)
			q.Bandwidth = m.bandwidth(km)
			return ScaleQuality(q, scale)
		})
	}
	return profiles
}

func (m Mobility) bandwidth(km float64) int64 {
	w := float64(m.Bandwidth)
	if km > m.Reference {
		w *= math.Pow(m.Reference/km, m.Exponent)
	}
	if m.Bandwidth == 0 {
		return 0
	}
	return max(minBandwidth, int64(math.Round(w)))
}
