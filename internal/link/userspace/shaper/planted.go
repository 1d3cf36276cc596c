//go:build planted

package shaper

import "os"

// activeFault is the planted fault of this process, see planted_off.go.
var activeFault = os.Getenv("SKERRY_PLANTED")

var (
	plantedDepartures = activeFault == "departures"
	plantedLatency    = activeFault == "latency"
	plantedJitter     = activeFault == "jitter"
	plantedChanges    = activeFault == "changes"
)
