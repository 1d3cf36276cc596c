package verdict

// one is a reason by itself where it holds.
func one(holds bool, kind Kind, format string, args ...any) []reason {
	if !holds {
		return nil
	}
	return []reason{because(kind, format, args...)}
}

func (l Limits) emulator(late float64) []reason {
	return one(late > l.EmulatorLateUS, EmulatorLate, "the emulator handed 1 %% of the packets over more than %.1f ms late (limit %.1f ms)", late/1000, l.EmulatorLateUS/1000)
}

func (l Limits) driverCPU(u Use) []reason {
	return one(u.Cores > l.ClientCPUShare*u.Of, DriverCPU, "the driver used %.2f of its %.3g cores: the client, not the database, was the limit", u.Cores, u.Of)
}

func (l Limits) hostCPU(u Use) []reason {
	return one(u.Cores > l.HostCPUShare*u.Of, HostCPU, "the machine was busy with %.2f of its %.0f cores on average: CPU, not the network, was the limit", u.Cores, u.Of)
}

func stuck(n int64) []reason {
	return one(n > 0, Stuck, "%d operations outlived their timeout and were left behind", n)
}

// sampledShare is how many of a measurement's seconds must have been sampled: a busy machine
// takes two seconds for one now and then.
const sampledShare = 0.5

func samples(s Samples) []reason {
	return one(float64(s.Taken) < sampledShare*float64(s.Due), NoEvidence, "what nodes and machine used was sampled in %d of %d seconds", s.Taken, s.Due)
}
