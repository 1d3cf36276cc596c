package topology

import (
	"math"
	"time"
)

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

// Point is a place on Earth in degrees.
type Point struct{ Lat, Lon float64 }

// Distance is the great circle between two points in km, by the haversine formula:
//
//	h = sin²(Δφ/2) + cos φ1 cos φ2 sin²(Δλ/2),  d = 2 R asin √h
func Distance(a, b Point) float64 {
	const rad = math.Pi / 180
	sLat := math.Sin((b.Lat - a.Lat) * rad / 2)
	sLon := math.Sin((b.Lon - a.Lon) * rad / 2)
	h := sLat*sLat + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*sLon*sLon
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// Propagation is the one-way latency over so many km: distance x detour / speed of
// light in fibre.
func Propagation(km, detour float64) time.Duration {
	return time.Duration(math.Round(km * detour / lightInFibre * float64(time.Second)))
}

// Between is the point at a fraction f of the great circle from a to b (spherical linear
// interpolation). Between antipodes, where every way is as long, it goes by longitude.
func Between(a, b Point, f float64) Point {
	const rad = math.Pi / 180
	angle := Distance(a, b) / earthRadius
	s := math.Sin(angle)
	if s < 1e-9 {
		return Point{a.Lat + (b.Lat-a.Lat)*f, a.Lon + (b.Lon-a.Lon)*f}
	}
	p, q := math.Sin((1-f)*angle)/s, math.Sin(f*angle)/s
	x := p*math.Cos(a.Lat*rad)*math.Cos(a.Lon*rad) + q*math.Cos(b.Lat*rad)*math.Cos(b.Lon*rad)
	y := p*math.Cos(a.Lat*rad)*math.Sin(a.Lon*rad) + q*math.Cos(b.Lat*rad)*math.Sin(b.Lon*rad)
	z := p*math.Sin(a.Lat*rad) + q*math.Sin(b.Lat*rad)
	return Point{math.Atan2(z, math.Hypot(x, y)) / rad, math.Atan2(y, x) / rad}
}
