// Package event is what can happen to a cloud while a trial measures: to its links, its
// nodes, and the membership of its database. An experiment lists events; each entry says
// what happens, to whom, and when.
//
//	[]Event ─ Check ─► problems, at their place in the file
//	   │
//	   └──── Runner ─► occurrence ─ apply ─► World (Net, hosts, cluster) ─ revert ─►
//	           ▲                      │
//	       seed, clock          record.Event
//
// Every event can be reverted, in any order, and combined with others: what a link is
// like is its base with all changes in force put on it in the order in which they came
// (Net). One seed fixes every random choice, whatever the timing of the trial.
package event

import "skerry/internal/unit"

// Event is one entry of the list: exactly one kind of event, and when it happens. Times
// count from the begin of the measurement.
type Event struct {
	// Name is what results call it; its kind where it is left out.
	Name string `yaml:"name" json:"name,omitempty"`
	// At is when it first happens, or where it waits for something, not before when.
	At *unit.Duration `yaml:"at" json:"at,omitempty"`
	// When lets it wait. steady: until the goodput is steady (that of the last 5 s is within
	// 10 % of that of the 5 s before, and no second without operations), counted from when
	// the entry above was done. completed: until the change of the entry above is complete.
	// reverted: until it has been taken back. It happens once for each time that the entry
	// above did.
	When string `yaml:"when" json:"when,omitempty" jsonschema:"enum=steady,enum=completed,enum=reverted"`
	// After is how long it then still waits.
	After unit.Duration `yaml:"after" json:"after,omitempty"`
	// Every repeats it at that interval, from begin to begin.
	Every *unit.Duration `yaml:"every" json:"every,omitempty"`
	// Gap repeats it so long after it was over: reverted, or complete where it is not to be.
	Gap *unit.Duration `yaml:"gap" json:"gap,omitempty"`
	// Churn repeats it at random.
	Churn *Churn `yaml:"churn" json:"churn,omitempty"`
	// For is how long it lasts once its change is complete; then it is reverted. Left out,
	// it lasts to the end of the trial.
	For *unit.Duration `yaml:"for" json:"for,omitempty"`
	// Until ends it: nothing begins then or later, and what lasts is reverted.
	Until *unit.Duration `yaml:"until" json:"until,omitempty"`

	// Latency changes how long packets take.
	Latency *Latency `yaml:"latency" json:"latency,omitempty"`
	// Bandwidth changes how fast links are.
	Bandwidth *BandwidthSpec `yaml:"bandwidth" json:"bandwidth,omitempty"`
	// Loss makes links lose packets.
	Loss *Loss `yaml:"loss" json:"loss,omitempty"`
	// Jitter makes the latency vary from packet to packet.
	Jitter *Jitter `yaml:"jitter" json:"jitter,omitempty"`
	// LinkDown takes links down, silently or so that their nodes notice.
	LinkDown *LinkDown `yaml:"link_down" json:"link_down,omitempty"`
	// LinkUp lets packets pass again on links that are down, whatever brought them down.
	LinkUp *Links `yaml:"link_up" json:"link_up,omitempty"`
	// LinkFlap takes links down and up again and again.
	LinkFlap *Flap `yaml:"link_flap" json:"link_flap,omitempty"`
	// Partition cuts every link between groups of nodes.
	Partition *Partition `yaml:"partition" json:"partition,omitempty"`

	// Kill ends the database's processes on nodes with SIGKILL; they stay members. Reverted,
	// they are started again on the same data.
	Kill *Nodes `yaml:"kill" json:"kill,omitempty"`
	// Stop ends the database's processes on nodes in its own way; reverted as kill is.
	Stop *Nodes `yaml:"stop" json:"stop,omitempty"`
	// Start starts what kill and stop have ended.
	Start *Nodes `yaml:"start" json:"start,omitempty"`
	// Restart stops and starts nodes, one after the other.
	Restart *Restart `yaml:"restart" json:"restart,omitempty"`
	// Pause stops every process of nodes where it is (SIGSTOP), its connections open.
	Pause *Nodes `yaml:"pause" json:"pause,omitempty"`
	// Resume lets the processes of nodes go on (SIGCONT), whatever paused them.
	Resume *Nodes `yaml:"resume" json:"resume,omitempty"`

	// Leave ends the membership of nodes by the database's own procedure. Reverted, they join.
	Leave *Leave `yaml:"leave" json:"leave,omitempty"`
	// Join makes nodes members. Reverted, they leave.
	Join *Nodes `yaml:"join" json:"join,omitempty"`

	// CPU keeps cores of nodes busy, as "yes > /dev/null" does.
	CPU *CPU `yaml:"cpu" json:"cpu,omitempty"`
	// Memory takes memory of nodes.
	Memory *Memory `yaml:"memory" json:"memory,omitempty"`
	// DiskSlow bounds what nodes read from and write to their disk.
	DiskSlow *DiskSlow `yaml:"disk_slow" json:"disk_slow,omitempty"`
	// DiskFull leaves no space on the disk of nodes.
	DiskFull *DiskFull `yaml:"disk_full" json:"disk_full,omitempty"`
	// NetworkLoad sends data between nodes, as iperf3 does.
	NetworkLoad *NetworkLoad `yaml:"network_load" json:"network_load,omitempty"`
	// ClockSkew sets the clocks of nodes wrong.
	ClockSkew *ClockSkew `yaml:"clock_skew" json:"clock_skew,omitempty"`
}

// Churn repeats an event at random times, as a Poisson process does.
type Churn struct {
	// Every is the mean time from one begin to the next, exponentially distributed.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"required"`
	// Lasting is the mean time that each lasts, exponentially distributed, in place of for.
	Lasting *unit.Duration `yaml:"lasting" json:"lasting,omitempty"`
	// Most is how many may last at once; what would be more is left out. 0 is any number.
	Most int `yaml:"most" json:"most,omitempty" jsonschema:"minimum=0"`
}

// Alternatives: an event is repeated in one way, and is of one kind.
func (Event) Alternatives() [][]string {
	return [][]string{{"every", "gap", "churn"}, Kinds()}
}

// What an entry can wait for.
const (
	whenSteady    = "steady"
	whenCompleted = "completed"
	whenReverted  = "reverted"
)

// Kinds are the keys of the kinds of events.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Kind is the key of the event's kind, "" where it has none.
func (e Event) Kind() string {
	name, _ := e.kind()
	return name
}

func (e Event) kind() (string, kind) {
	for _, k := range kinds {
		if of := k.of(&e); of != nil {
			return k.name, of
		}
	}
	return "", nil
}

// Label is what messages call the event.
func (e Event) Label() string {
	if e.Name != "" {
		return e.Name
	}
	return e.Kind()
}

// repeats tells whether the entry says by itself when it happens again.
func (e Event) repeats() bool { return e.Every != nil || e.Gap != nil || e.Churn != nil }
