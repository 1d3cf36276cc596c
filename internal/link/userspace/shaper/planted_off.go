//go:build !planted

package shaper

// Faults that tests build into the emulator with the tag "planted", to prove that a trial detects a link that does not
// apply its settings. They are false at compile time in the released program.
const (
	plantedDepartures = false // a change of the rate does not take effect while packets wait
	plantedLatency    = false // packets arrive after half of the latency
	plantedJitter     = false // each packet's delay is independent, without overtaking
	plantedChanges    = false // changes of a link do not take effect
)
