package topology

import "skerry/internal/unit"

// Mobility is sites that move.
type Mobility struct {
	// Sites are the moving ones; all others stay at their coordinates.
	Sites []Track `yaml:"sites" json:"sites" jsonschema:"required,minItems=1"`
	// Bandwidth of a link between sites up to reference apart.
	Bandwidth unit.Bandwidth `yaml:"bandwidth" json:"bandwidth" jsonschema:"default=1gbit"`
	// Reference is the distance in km beyond which bandwidth falls.
	Reference float64 `yaml:"reference_km" json:"reference_km" jsonschema:"default=100,exclusiveMinimum=0"`
	// Exponent is how fast it falls: bandwidth x (reference / distance)^exponent.
	Exponent float64 `yaml:"exponent" json:"exponent" jsonschema:"default=1,minimum=0,maximum=4"`
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
