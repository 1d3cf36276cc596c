package event

// kinds are all kinds of events, in the order in which messages and documents name them. A
// new one is a file and a line here.
var kinds = []Kind{
	latencyKind,
	bandwidthKind,
	lossKind,
	jitterKind,
	linkDownKind,
	linkUpKind,
	linkFlapKind,
	partitionKind,
	killKind,
	stopKind,
	startKind,
	restartKind,
	pauseKind,
	resumeKind,
	leaveKind,
	joinKind,
	cpuKind,
	memoryKind,
	diskSlowKind,
	diskFullKind,
	networkLoadKind,
	clockSkewKind,
}

// Kinds are all kinds of events.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// KindNames are the keys of the kinds.
func KindNames() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}
