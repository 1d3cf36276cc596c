// Package choose answers which database to take: it reads what somebody needs, finds the
// databases and settings that could do, races them through trials on quiet and on bad days, and
// says which did best, how sure that is, and what became of the others.
//
//	needs.yaml ─► Needs ─► candidates ─► race ◄─► heats (experiments, run one by one) ─► Answer
//
// Everything that an answer rests on is in the choice's folder: the needs, an experiment file
// for every candidate and day, and the run directories. The race itself is not stored: it is
// held again over the runs that are there, so that an interrupted one goes on, one with other needs
// uses what was measured, and a new candidate joins.
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
	"skerry/internal/evidence/assert"
	"skerry/internal/experiment"
	"skerry/internal/record/metric"
	"skerry/internal/topology"
)

// Needs is a needs file: the cloud that there is, what will be asked of the database, and what
// it must do.
type Needs struct {
	// Cloud is where the database will run, as an experiment's topology.
	Cloud topology.Spec `yaml:"cloud" json:"cloud" jsonschema:"required"`
	// Client is the site that requests come from, or several: each sends an equal part of the load
	// and works on an equal part of the records, as users do who have accounts of their own.
	Client event.Names `yaml:"client" json:"client,omitempty"`
	// Load is what will be asked, and how often, of all clients together.
	Load Load `yaml:"load" json:"load"`
	// Must lists what a database has to do: lines as an experiment's assert has them ("p99 < 400ms",
	// "lost_writes == 0"), and what reads promise ("read: linearizable"). Response times and rates
	// are held against the quiet day; events, availability and losses against every day.
	Must []Must `yaml:"must" json:"must,omitempty"`
	// BadDays are what it must live through, each tried by itself.
	BadDays []BadDay `yaml:"bad_days" json:"bad_days,omitempty"`
	// Prefer lists what to choose by among those that do: metrics, the most important first. The
	// first ranks, the others are shown beside it.
	Prefer []string `yaml:"prefer" json:"prefer,omitempty"`
	// Consider names the databases; all that are installed, where it is left out. A last "..." stands
	// for all others that are installed.
	Consider []string `yaml:"consider" json:"consider,omitempty"`
	// Budget is how long it may take: trials that are run again count, too.
	Budget unit.Duration `yaml:"budget" json:"budget" jsonschema:"default=40m"`
	// Measure is how long a quiet day is measured, and how long a bad one before and after.
	Measure unit.Duration `yaml:"measure" json:"measure" jsonschema:"default=10s"`
	// Lasts is how long what makes a day bad lasts.
	Lasts unit.Duration `yaml:"lasts" json:"lasts" jsonschema:"default=10s"`
	// Repetitions of the winner on each day, where the budget allows.
	Repetitions int `yaml:"repetitions" json:"repetitions" jsonschema:"default=3,minimum=1,maximum=20"`
	// Parallel is how many trials may run at the same time, or auto: as long as this machine has room.
	Parallel experiment.Parallel `yaml:"parallel" json:"parallel" jsonschema:"default=1"`
	// Seed of every random choice.
	Seed uint64 `yaml:"seed" json:"seed" jsonschema:"default=1"`

	// built is the cloud, with the clients in it; Plan builds it.
	built topology.Topology

	path string // of the file
	dir  string // that files are relative to
	text []byte
}

// Load is what users will ask of the database.
type Load struct {
	// Workload is one of YCSB's.
	Workload string `yaml:"workload" json:"workload" jsonschema:"default=b,enum=a,enum=b,enum=c,enum=d,enum=e,enum=f"`
	// Target is how many operations a second are asked for, evenly spaced; 0 is as many as
	// threads can do.
	Target float64 `yaml:"target" json:"target,omitempty" jsonschema:"minimum=0"`
	// Records is how many there are.
	Records int64 `yaml:"records" json:"records" jsonschema:"default=1000,minimum=1"`
	// Threads is how many connections there are.
	Threads int `yaml:"threads" json:"threads" jsonschema:"default=32,minimum=1,maximum=100000"`
	// Properties are YCSB's own.
	Properties map[string]string `yaml:"properties" json:"properties,omitempty"`
}

// Shorthand: "load: b" is "load: {workload: b}".
func (Load) Shorthand() string { return "workload" }

// Must is one thing that a database has to do.
type Must struct {
	// Line is a metric, a comparison and a value: "p99 < 400ms".
	Line string `yaml:"line" json:"line,omitempty"`
	// Read is what reads promise by the database's design: any, monotonic or linearizable.
	Read string `yaml:"read" json:"read,omitempty" jsonschema:"enum=any,enum=monotonic,enum=linearizable"`
}

// Shorthand: "- p99 < 400ms" is "- {line: p99 < 400ms}".
func (Must) Shorthand() string { return "line" }

// Alternatives: a need is one thing.
func (Must) Alternatives() [][]string { return [][]string{{"line", "read"}} }

// BadDay is something that will happen to the cloud.
type BadDay struct {
	// Name is how results call the day; what happens, where it is left out.
	Name string `yaml:"name" json:"name,omitempty"`
	// SiteLost is a site that no other reaches. A client there goes on reaching the nodes of its own site.
	SiteLost string `yaml:"site_lost" json:"site_lost,omitempty"`
	// LinkCut is a link, as "Pune~Seoul", or any.
	LinkCut string `yaml:"link_cut" json:"link_cut,omitempty"`
	// Far is a site whose links get longer.
	Far *Far `yaml:"far" json:"far,omitempty"`
	// Flap is a link or a site whose links to others come and go every few seconds, or any link.
	Flap string `yaml:"flap" json:"flap,omitempty"`
	// Killed is a node whose database is killed and started again, or any.
	Killed string `yaml:"killed" json:"killed,omitempty"`
	// Events are whatever else an experiment's events can be (events.md); times count from
	// the begin of the measurement.
	Events []event.Event `yaml:"events" json:"events,omitempty"`
}

// Alternatives: a day is bad in one way.
func (BadDay) Alternatives() [][]string {
	return [][]string{{"site_lost", "link_cut", "far", "flap", "killed", "events"}}
}

// Far is a site whose links get longer.
type Far struct {
	// Of is the site.
	Of string `yaml:"of" json:"of" jsonschema:"required"`
	// Scale is by how much.
	Scale float64 `yaml:"scale" json:"scale" jsonschema:"default=3,minimum=1"`
}

// Shorthand: "far: Pune" is "far: {of: Pune}".
func (Far) Shorthand() string { return "of" }

// Read reads a needs file. The error is strict.Problems for mistakes in it.
func Read(path string) (Needs, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Needs{}, fmt.Errorf("reading the needs: %w", err)
	}
	return Parse(path, data)
}

// Parse is Read for a text that is at hand already; path is where it came from.
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
		return n, strict.Problems{{Pos: root.Pos, Message: fmt.Sprintf("needs are a mapping, not %v", root.Kind), Hint: "begin with cloud: ..."}}
	}
	ps := strict.Decode(root, &n, "")
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
				return n, fmt.Errorf("finding %s: %w", from, err)
			}
		}
	}
	return n, nil
}

// check finds what the types cannot tell.
func (n Needs) check() (ps strict.Problems) {
	report := func(path, hint, format string, args ...any) {
		ps = append(ps, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	days := map[string]int{}
	for i, d := range n.BadDays {
		at := fmt.Sprintf("bad_days[%d]", i)
		if d.Label() == "" {
			report(at, "give site_lost, link_cut, far, flap, killed or events", "nothing says what happens")
		}
		if first, taken := days[d.Label()]; taken {
			report(at, "give it a name", "the day %q is bad_days[%d], too", d.Label(), first)
		}
		days[d.Label()] = i
	}
	for i, m := range n.Must {
		at := fmt.Sprintf("must[%d]", i)
		if m.Line == "" {
			continue
		}
		l, err := assert.Parse(m.Line)
		if err != nil {
			report(at, "", "%v", err)
			continue
		}
		if name := l.Metric.Event; name != "" && !slices.ContainsFunc(n.BadDays, func(d BadDay) bool { return d.hasEvent(name) }) {
			report(at, "name one of the bad days, or leave it out", "no bad day has an event %q", name)
		}
		if pool := l.Metric.Pool; pool != "" && !slices.Contains(n.poolNames(), pool) {
			report(
				at,
				"name a client's site as "+strings.Join(n.poolNames(), ", ")+"; a single client has no figures of its own",
				"no client is called %q", pool,
			)
		}
	}
	for i, name := range n.Prefer {
		if m, err := metric.Parse(name); err != nil {
			report(fmt.Sprintf("prefer[%d]", i), "", "%v", err)
		} else if m.Event != "" || m.Audit {
			report(fmt.Sprintf("prefer[%d]", i), "put it under must", "%s is no figure of a quiet day", name)
		}
	}
	for i, name := range n.Consider {
		if name == otherDatabases && i < len(n.Consider)-1 {
			report(fmt.Sprintf("consider[%d]", i), "put it last", "%s stands for all other databases", otherDatabases)
		}
	}
	if most := float64(runtime.NumCPU()) * driverRate; n.Load.Target > most {
		report("load.target", "ask for less, or choose on a machine with more cores", "the client's machine cannot send %.0f operations a second: %d cores send about %.0f (link-accuracy.md)",
			n.Load.Target, runtime.NumCPU(), most)
	}
	return append(ps, n.checkClients()...)
}

// driverRate is how many operations a second the driver sends with one core, to a database that costs the
// client as little as Redis does (docs/link-accuracy.md).
const driverRate = 300_000

// otherDatabases stands for the databases that are not named.
const otherDatabases = "..."

// requiredReads is what reads must promise.
func (n Needs) requiredReads() database.Reads {
	promise := database.ReadsAny
	for _, m := range n.Must {
		if i := slices.Index(database.ReadsNames(), m.Read); i > int(promise) {
			promise = database.Reads(i)
		}
	}
	return promise
}

// losesNothing tells whether no acknowledged write may be lost.
func (n Needs) losesNothing() bool {
	return slices.ContainsFunc(n.Must, func(m Must) bool {
		return strings.ReplaceAll(m.Line, " ", "") == "lost_writes==0"
	})
}
