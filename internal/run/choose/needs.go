// Package choose chooses a database for a cloud. It reads the needs, finds candidate databases and
// settings, races them through trials on quiet and bad days, and reports the best one with its evidence.
//
//	needs.yaml ─► Needs ─► candidates ─► race ◄─► experiments, run one by one ─► Answer
//
// The choice's folder holds all evidence: the needs, an experiment file per candidate and day, and the run
// directories. The race is not stored; it is replayed over the existing runs. So an interrupted choice
// continues, one with other needs reuses measurements, and a new candidate joins.
package choose

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/record/metric"
	"skerry/internal/topology"
)

// Needs is a needs file: the cloud, the load, and the requirements on the database.
type Needs struct {
	// Cloud is where the database will run, in the form of an experiment's topology.
	// Clusters that Skerry did not start need none.
	Cloud topology.Spec `yaml:"cloud" json:"cloud"`
	// Client is the site of the clients, or several sites. Each of several sends an equal part of the load
	// to an equal part of the records, like users with their own accounts.
	Client event.Names `yaml:"client" json:"client,omitempty"`
	// Load is the total load of all clients.
	Load Load `yaml:"load" json:"load"`
	// Must lists the requirements: assertions as in an experiment ("p99 < 400ms", "lost_writes == 0"), and
	// guarantees of reads ("read: linearizable"). Response times and rates apply to the quiet day; events,
	// availability and losses apply to every day.
	Must []Must `yaml:"must" json:"must,omitempty"`
	// BadDays are the disturbances to survive, each tried separately.
	BadDays []BadDay `yaml:"bad_days" json:"bad_days,omitempty"`
	// Prefer lists the metrics that rank candidates. The first one decides; the others are shown.
	Prefer []string `yaml:"prefer" json:"prefer,omitempty"`
	// Consider names the databases, by default all installed ones, and clusters that Skerry did not start. A final "..."
	// stands for all other installed databases.
	Consider []Considered `yaml:"consider" json:"consider,omitempty"`
	// Budget is the total time for trials, including repeated ones.
	Budget unit.Duration `yaml:"budget" json:"budget" jsonschema:"default=40m"`
	// Measure is the duration of a quiet measurement, and of a bad day before and after its events.
	Measure unit.Duration `yaml:"measure" json:"measure" jsonschema:"default=10s"`
	// Lasts is the duration of a bad day's events.
	Lasts unit.Duration `yaml:"lasts" json:"lasts" jsonschema:"default=10s"`
	// Repetitions of the winner on each day, if the budget allows.
	Repetitions int `yaml:"repetitions" json:"repetitions" jsonschema:"default=3,minimum=1,maximum=20"`
	// Parallel is the number of concurrent trials, or auto: as many as this machine can run.
	Parallel experiment.Parallel `yaml:"parallel" json:"parallel" jsonschema:"default=1"`
	// Seed of all random choices.
	Seed uint64 `yaml:"seed" json:"seed" jsonschema:"default=1"`

	// built is the topology including the clients, set by Plan.
	built topology.Topology

	path string // of the file
	dir  string // base of relative paths
	text []byte
}

// Load is the load of the clients.
type Load struct {
	// Workload is a core workload of YCSB.
	Workload string `yaml:"workload" json:"workload" jsonschema:"default=b,enum=a,enum=b,enum=c,enum=d,enum=e,enum=f"`
	// Target is the rate in operations per second, evenly spaced; 0 for as many as possible.
	Target float64 `yaml:"target" json:"target,omitempty" jsonschema:"minimum=0"`
	// Records is the number of records.
	Records int64 `yaml:"records" json:"records" jsonschema:"default=1000,minimum=1"`
	// Threads is the number of connections.
	Threads int `yaml:"threads" json:"threads" jsonschema:"default=32,minimum=1,maximum=100000"`
	// Properties are additional YCSB properties.
	Properties map[string]string `yaml:"properties" json:"properties,omitempty"`
}

// Shorthand: "load: b" is "load: {workload: b}".
func (Load) Shorthand() string { return "workload" }

// Must is one requirement.
type Must struct {
	// Line is a metric, a comparison and a value: "p99 < 400ms".
	Line string `yaml:"line" json:"line,omitempty"`
	// Read is the guarantee of reads by the database's design: any, monotonic or linearizable.
	Read string `yaml:"read" json:"read,omitempty" jsonschema:"enum=any,enum=monotonic,enum=linearizable"`
}

// Shorthand: "- p99 < 400ms" is "- {line: p99 < 400ms}".
func (Must) Shorthand() string { return "line" }

func (Must) Alternatives() [][]string { return [][]string{{"line", "read"}} }

// BadDay is a disturbance of the cloud.
type BadDay struct {
	// Name of the day in results; by default what happens.
	Name string `yaml:"name" json:"name,omitempty"`
	// SiteLost is a site that other sites cannot reach. A client at the site still reaches the local nodes.
	SiteLost string `yaml:"site_lost" json:"site_lost,omitempty"`
	// LinkCut is a link, such as "Pune~Seoul", or any.
	LinkCut string `yaml:"link_cut" json:"link_cut,omitempty"`
	// Far is a site whose links get longer.
	Far *Far `yaml:"far" json:"far,omitempty"`
	// Flap is a link, a site or any: its links go down and up every few seconds.
	Flap string `yaml:"flap" json:"flap,omitempty"`
	// Killed is a node whose database is killed and restarted, or any.
	Killed string `yaml:"killed" json:"killed,omitempty"`
	// Events are other events of an experiment (events.md). Times count from the start of the measurement.
	Events []event.Event `yaml:"events" json:"events,omitempty"`
}

func (BadDay) Alternatives() [][]string {
	return [][]string{{"site_lost", "link_cut", "far", "flap", "killed", "events"}}
}

// Far is a site whose links get longer.
type Far struct {
	// Of is the site.
	Of string `yaml:"of" json:"of" jsonschema:"required"`
	// Scale is the factor of its latency.
	Scale float64 `yaml:"scale" json:"scale" jsonschema:"default=3,minimum=1"`
}

// Shorthand: "far: Pune" is "far: {of: Pune}".
func (Far) Shorthand() string { return "of" }

// Read reads a needs file. The error is strict.Problems for mistakes in it.
func Read(path string) (Needs, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Needs{}, fmt.Errorf("read needs: %w", err)
	}
	return Parse(path, data)
}

// Parse parses needs read from path.
func Parse(path string, data []byte) (Needs, error) {
	root, err := strict.Parse(path, data)
	if err != nil {
		return Needs{}, err
	}
	n := Needs{Budget: unit.Duration(40 * time.Minute), Measure: unit.Duration(10 * time.Second), Lasts: unit.Duration(10 * time.Second),
		Repetitions: 3, Parallel: 1, Seed: 1, path: path, dir: filepath.Dir(path), text: data, Load: Load{
			Workload: "b", Records: 1000, Threads: 32,
		}}
	if root.Kind != strict.Map {
		return n, strict.Problems{{
			Pos: root.Pos, Message: fmt.Sprintf("needs must be a mapping, not %v", root.Kind),
			Hint: "begin with cloud: ...",
		}}
	}
	ps := strict.Decode(root, &n, "")
	if len(ps) == 0 && root.Get("cloud") == nil && n.usesLab() {
		ps = append(ps, strict.Problem{Pos: root.Pos, Message: "cloud is missing", Hint: "begin with cloud: ..."})
	}
	if len(ps) == 0 {
		ps = n.check()
	}
	if len(ps) > 0 {
		return n, ps.Locate(root, "")
	}
	if len(n.Prefer) == 0 {
		n.Prefer = []string{"p99", "cost.memory"}
	}
	if from := filepath.Join(n.dir, n.Cloud.From); n.Cloud.From != "" && !filepath.IsAbs(n.Cloud.From) {
		if _, err := os.Stat(from); err == nil { // else it is a preset
			if n.Cloud.From, err = filepath.Abs(from); err != nil {
				return n, fmt.Errorf("resolve %s: %w", from, err)
			}
		}
	}
	return n, nil
}

func (n Needs) check() (ps strict.Problems) {
	report := func(path, hint, format string, args ...any) {
		ps = append(ps, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	days := map[string]int{}
	for i, d := range n.BadDays {
		at := fmt.Sprintf("bad_days[%d]", i)
		if d.Label() == "" {
			report(at, "set site_lost, link_cut, far, flap, killed or events", "the day has no disturbance")
		}
		if first, taken := days[d.Label()]; taken {
			report(at, "give it a name", "the day %q is also bad_days[%d]", d.Label(), first)
		}
		days[d.Label()] = i
	}
	for i, m := range n.Must {
		at := fmt.Sprintf("must[%d]", i)
		if m.Line == "" {
			continue
		}
		l, err := metric.ParseAssertion(m.Line)
		if err != nil {
			report(at, "", "%v", err)
			continue
		}
		if name := l.Metric.Event; name != "" && !slices.ContainsFunc(n.BadDays, func(d BadDay) bool { return d.hasEvent(name) }) {
			report(at, "use the event of a bad day, or remove the event", "no bad day has an event %q", name)
		}
		if pool := l.Metric.Pool; pool != "" && !slices.Contains(n.poolNames(), pool) {
			report(at, "use the site of one of several clients: "+strings.Join(n.poolNames(), ", "), "no client is named %q", pool)
		}
	}
	for i, name := range n.Prefer {
		if m, err := metric.ParseName(name); err != nil {
			report(fmt.Sprintf("prefer[%d]", i), "", "%v", err)
		} else if m.Event != "" || m.Audit {
			report(fmt.Sprintf("prefer[%d]", i), "move it to must", "%s is not measured on a quiet day", name)
		}
	}
	n.checkConsidered(report)
	if most := float64(runtime.NumCPU()) * driverRate; n.Load.Target > most {
		report("load.target", "lower target, or run on a machine with more cores",
			"the client's machine cannot send %.0f operations/s: %d cores send about %.0f (link-accuracy.md)",
			n.Load.Target, runtime.NumCPU(), most)
	}
	return append(ps, n.checkClients()...)
}

// driverRate is the operations/s per core that the driver sends to a database whose client is as cheap as
// Redis's (docs/link-accuracy.md).
const driverRate = 300_000

// otherDatabases stands for all databases that are not named.
const otherDatabases = "..."

// Commands returns the commands of the user that the events of bad days run.
func (n Needs) Commands() (all []string) {
	for _, d := range n.BadDays {
		all = append(all, experiment.ListCommands(d.Events)...)
	}
	return all
}

func (n Needs) requiredReads() database.Reads {
	promise := database.ReadsAny
	for _, m := range n.Must {
		if i := slices.Index(database.ReadsNames(), m.Read); i > int(promise) {
			promise = database.Reads(i)
		}
	}
	return promise
}

func (n Needs) losesNothing() bool {
	return slices.ContainsFunc(n.Must, func(m Must) bool {
		return strings.ReplaceAll(m.Line, " ", "") == "lost_writes==0"
	})
}
