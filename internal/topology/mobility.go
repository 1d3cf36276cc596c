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
func (t Track) At(at time.Duration) point {
	w := t.Waypoints
	i := sort.Search(len(w), func(i int) bool { return time.Duration(w[i].At) > at })
	switch i {
	case 0:
		return point{w[0].Lat, w[0].Lon}
	case len(w):
		return point{w[i-1].Lat, w[i-1].Lon}
	}
	a, b := w[i-1], w[i]
	f := float64(at-time.Duration(a.At)) / float64(b.At-a.At)
	return interpolate(point{a.Lat, a.Lon}, point{b.Lat, b.Lon}, f)
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

// LinkProfiles returns the quality of every link that has a moving site at one of its ends,
// over time. Latency and bandwidth follow from distance; the rest stays as in t. Latencies
// are times scale.
func (m Mobility) LinkProfiles(t Topology, scale float64) map[string]link.Profile {
	place := make(map[string]func(time.Duration) point, len(t.Sites))
	for _, s := range t.Sites {
		place[s.Name] = func(time.Duration) point { return point{s.Lat, s.Lon} }
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
			km := greatCircleKm(place[a](at), place[b](at))
			q := l.AB
			q.Latency = propagationDelay(km, m.Detour)
			q.Bandwidth = m.bandwidthAt(km)
			return ScaleQuality(q, scale)
		})
	}
	return profiles
}

func (m Mobility) bandwidthAt(km float64) int64 {
	w := float64(m.Bandwidth)
	if km > m.Reference {
		w *= math.Pow(m.Reference/km, m.Exponent)
	}
	if m.Bandwidth == 0 {
		return 0
	}
	return max(minBandwidth, int64(math.Round(w)))
}

const (
	// lightInFibre in km/s: c = 299,792.458 km/s over 1.468, the group index of
	// standard single-mode fibre (ITU-T G.652) at 1550 nm.
	lightInFibre = 299792.458 / 1.468
	// earthRadius in km: the mean radius of the IUGG, with which haversine is within 0.5 %
	// of the ellipsoid.
	earthRadius = 6371.0088
	// defaultDetour is how much longer a fibre is than the great circle. ITU-T Y.1541
	// plans routes at 1.5 times the distance up to 1,000 km and 1.25 times beyond 1,200
	// km; real paths between continents follow cables and exchanges and are longer than
	// planned, so the higher of the two holds for all distances.
	defaultDetour = 1.5
)

// point is a place on Earth in degrees.
type point struct{ Lat, Lon float64 }

// greatCircleKm is the great circle between two points in km, by the haversine formula:
//
//	h = sin²(Δφ/2) + cos φ1 cos φ2 sin²(Δλ/2),  d = 2 R asin √h
func greatCircleKm(a, b point) float64 {
	const rad = math.Pi / 180
	sLat := math.Sin((b.Lat - a.Lat) * rad / 2)
	sLon := math.Sin((b.Lon - a.Lon) * rad / 2)
	h := sLat*sLat + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*sLon*sLon
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// propagationDelay is the one-way latency over so many km: distance x detour / speed of
// light in fibre.
func propagationDelay(km, detour float64) time.Duration {
	return time.Duration(math.Round(km * detour / lightInFibre * float64(time.Second)))
}

// interpolate is the point at a fraction f of the great circle from a to b (spherical linear
// interpolation). Between antipodes, where every way is as long, it goes by longitude.
func interpolate(a, b point, f float64) point {
	const rad = math.Pi / 180
	angle := greatCircleKm(a, b) / earthRadius
	s := math.Sin(angle)
	if s < 1e-9 {
		return point{a.Lat + (b.Lat-a.Lat)*f, a.Lon + (b.Lon-a.Lon)*f}
	}
	p, q := math.Sin((1-f)*angle)/s, math.Sin(f*angle)/s
	x := p*math.Cos(a.Lat*rad)*math.Cos(a.Lon*rad) + q*math.Cos(b.Lat*rad)*math.Cos(b.Lon*rad)
	y := p*math.Cos(a.Lat*rad)*math.Sin(a.Lon*rad) + q*math.Cos(b.Lat*rad)*math.Sin(b.Lon*rad)
	z := p*math.Sin(a.Lat*rad) + q*math.Sin(b.Lat*rad)
	return point{math.Atan2(z, math.Hypot(x, y)) / rad, math.Atan2(y, x) / rad}
}
