package trial

import (
	"fmt"
	"math"

	"skerry/internal/record"
)

// Limits are what a trial may deviate from what was asked and still be valid.
type Limits struct {
	RTTErrorMS     float64 // |median measured RTT - set RTT| of any link
	BandwidthError float64 // relative, of any link direction
	EmulatorLateUS float64 // p99 over all packets of the measurement
	EventLateUS    float64 // p99 of beginning after the time that was due
	ClientLateUS   float64 // p99 of sending after the intended time
	ClientCPUShare float64 // of the cores the driver may use
	HostCPUShare   float64 // of the machine's cores, mean over the measurement
	StealShare     float64 // of the machine's CPU time
}

// DefaultLimits are the thresholds of docs/fidelity.md.
var DefaultLimits = Limits{
	RTTErrorMS:     0.5,
	BandwidthError: 0.05,
	EmulatorLateUS: 1000,
	EventLateUS:    20000,
	ClientLateUS:   5000,
	ClientCPUShare: 0.9,
	HostCPUShare:   0.95,
	StealShare:     0.05,
}

// judge holds a trial's evidence against the limits. clientCores is how many cores
// the driver may use.
func judge(f record.Fidelity, clientCores float64, l Limits) record.Verdict {
	var reasons []string
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }

	var silent, slow, lost int
	for _, x := range f.Links {
		if x.TrainLost {
			lost++
		}
		switch {
		case !x.Answered:
			silent++
		case math.Abs(x.RTTErrorMS) > l.RTTErrorMS+x.SetJitterMS:
			slow++
		}
	}
	if silent > 0 {
		add("%d of %d links answered no probe", silent, len(f.Links))
	}
	if lost > 0 {
		add("no bandwidth train arrived on %d of %d links", lost, len(f.Links))
	}
	if slow > 0 {
		add("the RTT of %d of %d links is off by more than %.2g ms (worst %.2f ms)", slow, len(f.Links), l.RTTErrorMS, f.WorstRTTErrorMS)
	}
	if f.WorstBandwidthError > l.BandwidthError {
		add("a link's bandwidth is off by %.1f %% (limit %.1f %%)", 100*f.WorstBandwidthError, 100*l.BandwidthError)
	}
	if f.EmulatorLateP99US > l.EmulatorLateUS {
		add("the emulator handed 1 %% of the packets over more than %.1f ms late (limit %.1f ms)", f.EmulatorLateP99US/1000, l.EmulatorLateUS/1000)
	}
	if f.EventLateP99US > l.EventLateUS {
		add("1 %% of the events began more than %.1f ms late (limit %.1f ms)", f.EventLateP99US/1000, l.EventLateUS/1000)
	}
	if f.ClientLateP99US > l.ClientLateUS {
		add("the driver was more than %.1f ms late 1 %% of the time: latencies hold the client's own delay (limit %.1f ms)", f.ClientLateP99US/1000, l.ClientLateUS/1000)
	}
	if clientCores > 0 && f.ClientCPU > l.ClientCPUShare*clientCores {
		add("the driver used %.2f of its %.3g cores: the client, not the database, was the limit", f.ClientCPU, clientCores)
	}
	if cores := float64(f.HostCores); cores > 0 && f.HostCPU > l.HostCPUShare*cores {
		add("the machine was busy with %.2f of its %d cores on average: CPU, not the network, was the limit", f.HostCPU, f.HostCores)
	}
	if f.StealShare > l.StealShare {
		add("the hypervisor took %.0f %% of the machine's CPU time for others", 100*f.StealShare)
	}
	if len(reasons) > 0 {
		return record.Verdict{State: record.Suspect, Reasons: reasons}
	}
	return record.Verdict{State: record.Valid}
}
