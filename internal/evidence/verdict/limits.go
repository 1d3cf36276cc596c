package verdict

// Limits are what a trial may deviate from what was asked and still be valid; docs/fidelity.md
// has those that hold where an experiment says nothing.
type Limits struct {
	RTTErrorMS     float64 // |median measured RTT - set RTT| of any link, beyond its own jitter
	BandwidthError float64 // relative, of any link direction
	EmulatorLateUS float64 // p99 over all packets of the measurement
	EventLateUS    float64 // p99 of beginning after the time that was due
	ClientLateUS   float64 // p99 of sending after the intended time
	ClientCPUShare float64 // of the cores the driver may use
	HostCPUShare   float64 // of the machine's cores, mean over the measurement
	StealShare     float64 // of the machine's CPU time
	OthersShare    float64 // of the machine's cores, that programs other than the run's use, mean over the measurement
	Moved          float64 // relative, of a figure when the stretches in which processors were taken are left out
}
