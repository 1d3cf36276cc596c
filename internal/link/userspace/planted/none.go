//go:build !planted

// Package planted holds faults that tests build into the emulator with the tag "planted", to prove
// that a trial on a link which does not do what was set is found out. The program that users run
// has none of them: all are false there, at compile time.
package planted

// Faults; SKERRY_PLANTED names the one that is active.
const (
	Departures = false // a change of the rate does not take effect while packets wait
	Latency    = false // packets arrive after half of the latency
	Jitter     = false // each packet has a delay of its own, and none overtakes
	Changes    = false // changes of a link do not take effect
)
