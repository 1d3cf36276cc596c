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

// Mobility moves sites. The latency between two sites follows from their distance, as for coordinates. The bandwidth
// falls with the distance:
//
//	bandwidth │────────╮
//	          │        ╰╮          bandwidth x (reference / distance)^exponent
//	          │          ╰──╮
//	          │              ╰────────
//	          └────────┴────────────── distance
//	                reference
//
// The exponent 1 models one loss-bound TCP stream, whose rate is proportional to 1 / RTT (Mathis et al., 1997). The
// exponent 2 models the free-space loss of a radio link's power.
type Mobility struct {
	// Sites are the moving sites. All other sites stay at their coordinates.
	Sites []Track `yaml:"sites" json:"sites" jsonschema:"required,minItems=1"`
	// Bandwidth of a link between sites up to reference_km apart.
	Bandwidth unit.Bandwidth `yaml:"bandwidth" json:"bandwidth" jsonschema:"default=1gbit"`
	// Reference is the distance in km beyond which bandwidth falls.
	Reference float64 `yaml:"reference_km" json:"reference_km" jsonschema:"default=100,exclusiveMinimum=0"`
	// Exponent of the fall: bandwidth x (reference / distance)^exponent.
	Exponent float64 `yaml:"exponent" json:"exponent" jsonschema:"default=1,minimum=0,maximum=4"`
	// Detour is the length of the signal path divided by the length of the great circle.
	Detour float64 `yaml:"detour" json:"detour" jsonschema:"default=1.5,minimum=1,maximum=10"`
}

// Track is the path of one moving site.
type Track struct {
	// Site is the name of the moving site.
	Site string `yaml:"site" json:"site" jsonschema:"required"`
	// Waypoints are positions over time. The site moves along the great circle at constant speed between waypoints, and
	// stays before the first and after the last.
	Waypoints []Waypoint `yaml:"waypoints" json:"waypoints" jsonschema:"required,minItems=1"`
}

// Waypoint is a position at a time.
type Waypoint struct {
	// At is the time at which the site is at the position.
	At unit.Duration `yaml:"at" json:"at" jsonschema:"required"`
	// Lat is the latitude in degrees, north positive.
	Lat float64 `yaml:"lat" json:"lat" jsonschema:"required,minimum=-90,maximum=90"`
	// Lon is the longitude in degrees, east positive.
	Lon float64 `yaml:"lon" json:"lon" jsonschema:"required,minimum=-180,maximum=180"`
}

// minBandwidth is the least bandwidth of a distant link in bit/s. 0 would mean no limit.
const minBandwidth = 1000

// At returns the position of the site at a time.
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

// Check validates the mobility against a topology. The paths of problems are relative to the mobility.
func (m Mobility) Check(t Topology) (ps strict.Problems) {
	moving := map[string]bool{}
	for i, track := range m.Sites {
		path := fmt.Sprintf("sites[%d]", i)
		switch {
		case !slices.ContainsFunc(t.Sites, func(s Site) bool { return s.Name == track.Site }):
			ps = append(ps, strict.Problem{Path: path + ".site", Message: fmt.Sprintf("unknown site %q", track.Site)})
		case moving[track.Site]:
			ps = append(ps, strict.Problem{
				Path: path + ".site", Message: fmt.Sprintf("site %q has two tracks", track.Site), Hint: "put all waypoints into one track",
			})
		}
		moving[track.Site] = true
		for k := 1; k < len(track.Waypoints); k++ {
			if track.Waypoints[k].At <= track.Waypoints[k-1].At {
				ps = append(ps, strict.Problem{
					Path: fmt.Sprintf("%s.waypoints[%d].at", path, k), Message: "waypoint is not later than the previous waypoint",
				})
			}
		}
	}
	for _, s := range t.Sites {
		if !s.Located && !moving[s.Name] {
			ps = append(ps, strict.Problem{
				Path: "sites", Message: fmt.Sprintf("site %q has no coordinates", s.Name), Hint: "give the site lat and lon, or waypoints",
			})
		}
	}
	return ps
}

// LinkProfiles returns the quality over time of every link with a moving site at one end. Latency and bandwidth follow
// from the distance; the other fields stay as in t. Latencies are multiplied by scale.
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
	// earthRadius in km is the mean radius of the IUGG. With it, haversine is within 0.5 % of the ellipsoid.
	earthRadius = 6371.0088
	// defaultDetour is the length of a fibre divided by the length of the great circle. ITU-T Y.1541 plans 1.5 up to
	// 1,000 km and 1.25 beyond 1,200 km. Real paths between continents follow cables and exchanges and are longer than
	// planned, so the higher value applies to all distances.
	defaultDetour = 1.5
)

// point is a position on Earth in degrees.
type point struct{ Lat, Lon float64 }

// greatCircleKm returns the length of the great circle between two points in km, by the haversine formula:
//
//	h = sin²(Δφ/2) + cos φ1 cos φ2 sin²(Δλ/2),  d = 2 R asin √h
func greatCircleKm(a, b point) float64 {
	const rad = math.Pi / 180
	sLat := math.Sin((b.Lat - a.Lat) * rad / 2)
	sLon := math.Sin((b.Lon - a.Lon) * rad / 2)
	h := sLat*sLat + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*sLon*sLon
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// propagationDelay returns the one-way latency over a distance: distance x detour / speed of light in fibre.
func propagationDelay(km, detour float64) time.Duration {
	return time.Duration(math.Round(km * detour / lightInFibre * float64(time.Second)))
}

// interpolate returns the point at a fraction f of the great circle from a to b (spherical linear interpolation).
// Between antipodes, where all paths have the same length, it interpolates latitude and longitude.
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
