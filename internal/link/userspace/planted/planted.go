//go:build planted

package planted

import "os"

var active = os.Getenv("SKERRY_PLANTED")

var (
	Departures = active == "departures"
	Latency    = active == "latency"
	Jitter     = active == "jitter"
	Changes    = active == "changes"
)
