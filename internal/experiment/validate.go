package experiment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/lab/placement"
	"skerry/internal/topology"
	"skerry/internal/topology/flavor"
)

// Validation is what can be said of an experiment file before anything runs.
type Validation struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Problems []Mistake `json:"problems,omitempty"`
	// Name, Trials, EstimateS and Plan are of a valid file. EstimateS is the longest that
	// the run is likely to take, in seconds; 0 where nobody knows.
	Name      string  `json:"name,omitempty"`
	Trials    int     `json:"trials,omitempty"`
	EstimateS float64 `json:"estimate_s,omitempty"`
	Plan      []Cell  `json:"plan,omitempty"` // in the order of running
	// Places are where nodes stand, as far as the machines file tells; nil on this machine.
	Placement *placement.Plan `json:"places,omitempty"`
	// Notes say what of it has no effect, and what this machine will not do of it.
	Notes []string `json:"notes,omitempty"`

	experiment Experiment
	err        error
}

// Mistake is a strict.Problem in JSON.
type Mistake struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// ListMistakes are those that an error of a file at path tells: one each of strict.Problems, else the error itself.
func ListMistakes(err error, path string) (list []Mistake) {
	var ps strict.Problems
	if !errors.As(err, &ps) {
		return []Mistake{{File: path, Message: err.Error()}}
	}
	for _, p := range ps {
		m := Mistake{Line: p.Pos.Line, Column: p.Pos.Column, Path: p.Path, Message: p.Message, Hint: p.Hint}
		if p.Pos.Source != nil {
			m.File = p.Pos.Source.Name
		}
		list = append(list, m)
	}
	return list
}

// Validate loads a file and checks it against the databases.
func Validate(path string, sets []string, fast bool, databases map[string]database.Database) Validation {
	e, err := Load(path, sets, fast)
	return validate(path, e, err, databases)
}

// ValidateText is Validate for a text that is at hand already; path is where it is to lie.
func ValidateText(path string, text []byte, databases map[string]database.Database) Validation {
	e, err := Parse(path, text, nil, false)
	return validate(path, e, err, databases)
}

func validate(path string, e Experiment, err error, databases map[string]database.Database) Validation {
	v := Validation{File: path, experiment: e, err: err}
	if v.err == nil {
		v.err = CheckCapabilities(v.experiment, databases)
	}
	switch {
	case v.err != nil:
		v.Problems = ListMistakes(v.err, path)
	default:
		v.Valid, v.Name, v.Plan = true, v.experiment.Name, v.experiment.Plan()
		v.Trials = len(v.Plan)
		v.Notes = slices.Concat(v.experiment.UnusedSettings(databases), v.experiment.eventNotes(), v.experiment.allDriftNotes())
		v.Placement, v.err = v.experiment.Placement() // which was checked
		if d, known := v.experiment.Estimate(); known {
			v.EstimateS = d.Seconds()
		}
	}
	return v
}

// NoteMissingDatabases notes which databases of a valid file are not installed here.
func (v *Validation) NoteMissingDatabases(databases map[string]database.Database) {
	seen := map[string]bool{}
	for _, c := range v.Plan {
		d := c.Experiment.Database
		if seen[d.Key()] {
			continue
		}
		seen[d.Key()] = true
		db, err := c.Experiment.ResolveDatabase(databases)
		if err == nil {
			_, err = database.Locate(db, d.Version, "")
		}
		if err != nil {
			v.Notes = append(v.Notes, strings.TrimSuffix(fmt.Sprintf("the run would not start here: %v; %s", err, advice.Of(err)), "; "))
		}
	}
}

// NoteDiskLimits notes what this machine cannot do of a valid file. Disks tells whether disks of
// nodes can be bounded here; it is asked where that is wanted.
func (v *Validation) NoteDiskLimits(disks func() error) {
	if !v.Valid {
		return
	}
	flavors, kinds := v.experiment.boundsDisks()
	if !flavors && len(kinds) == 0 {
		return
	}
	err := disks()
	if err == nil {
		return
	}
	if flavors {
		v.Notes = append(v.Notes, fmt.Sprintf("disks of flavors are not bounded on this machine: %v", err))
	}
	for _, kind := range kinds {
		v.Notes = append(v.Notes, fmt.Sprintf("%s is unavailable on this machine, the event will fail: %v", kind, err))
	}
}

// NoteCongestionControls notes congestion controls of a valid file that this machine's kernel does not have among its available ones.
func (v *Validation) NoteCongestionControls(available []string) {
	for _, c := range v.Plan {
		cloud, err := c.Experiment.Cloud()
		control := cloud.TCP["congestion_control"]
		if err != nil || control == "" || slices.Contains(available, control) {
			continue
		}
		note := fmt.Sprintf("the congestion control %s is not loaded on this machine (%s): nodes get it if root runs the experiment and the kernel has a module tcp_%s",
			control, strings.Join(available, ", "), control)
		if !slices.Contains(v.Notes, note) {
			v.Notes = append(v.Notes, note)
		}
	}
}

// boundsDisks tells whether any trial's flavors bound the disks of nodes, and which kinds of
// its events do.
func (e Experiment) boundsDisks() (flavors bool, kinds []string) {
	for _, c := range e.Plan() {
		if cloud, err := c.Experiment.Cloud(); err == nil {
			for _, n := range cloud.Nodes {
				flavors = flavors || n.Flavor != nil && n.Flavor.Disk != (flavor.Disk{})
			}
		}
		for _, x := range c.Experiment.Events {
			if x.NeedsDisks() && !slices.Contains(kinds, x.Kind()) {
				kinds = append(kinds, x.Kind())
			}
		}
	}
	return flavors, kinds
}

// Cloud is the topology of a valid file.
func (v Validation) Cloud() topology.Topology { return v.experiment.origin.cloud }

// Err is what is wrong with the file, nil when it is valid.
func (v Validation) Err() error { return v.err }

// Describe writes what would be run, and with plan every trial in the order of running.
func (v Validation) Describe(w io.Writer, plan bool) error {
	e := v.experiment
	about := ""
	if e.Description != "" {
		about = ": " + e.Description
	}
	fmt.Fprintf(w, "%s is valid%s\n", v.File, about)
	fmt.Fprintf(w, "  %s on %d nodes, client %s\n", e.Database.Label(), len(e.DataNodes()), e.clientLocation(e.ClientNode()))
	for _, p := range e.Workloads {
		fmt.Fprintf(w, "  side by side: %s, %s, %s\n", p.Label(), p.Workload.describeRate(), e.clientLocation(p.Node(e)))
	}
	fmt.Fprintf(w, "  %s\n", describeTrials(e))
	if e.ClusterWarmup > 0 {
		fmt.Fprintf(w, "  a new cluster: warmed up for %v\n", e.ClusterWarmup)
	}
	fmt.Fprintf(w, "  each: warm-up %v, then %s\n", e.Warmup, e.Stop)
	if len(e.Events) > 0 {
		fmt.Fprintf(w, "  meanwhile: %s\n", e.describeEvents())
	}
	e.describeCloud(w)
	if d, known := e.Estimate(); known {
		fmt.Fprintf(w, "  at most about %v in all\n", roundEstimate(d))
	} else {
		fmt.Fprintf(w, "  how long it takes depends on the database: stop.time would bound it\n")
	}
	for _, n := range v.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
	if !plan {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\n  ORDER\tTRIAL\tREPETITION")
	if len(v.Plan) > 0 {
		for _, axis := range v.Plan[0].Axes {
			fmt.Fprintf(t, "\t%s", strings.ToUpper(axis))
		}
	}
	fmt.Fprintln(t, "\tSEED")
	for i, c := range v.Plan {
		fmt.Fprintf(t, "  %d\t%d\t%d", i+1, c.ID, c.Repetition)
		for _, axis := range c.Axes {
			fmt.Fprintf(t, "\t%v", c.Parameters[axis])
		}
		fmt.Fprintf(t, "\t%d\n", c.Seed)
	}
	return t.Flush()
}

// describeTrials says what varies: "4 trials: workload a, c x scale 0.2, 1".
func describeTrials(e Experiment) string {
	cells := e.Plan()
	text := fmt.Sprintf("%d trials", len(cells))
	if len(cells) == 1 {
		text = "1 trial"
	}
	var parts []string
	for _, axis := range e.Matrix {
		values := make([]string, len(axis.nodes))
		for i, l := range axis.labels() {
			values[i] = fmt.Sprint(l)
		}
		parts = append(parts, axis.Path+" "+strings.Join(values, ", "))
	}
	if e.Repetitions > 1 {
		parts = append(parts, fmt.Sprintf("%d repetitions", e.Repetitions))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, " x ")
	}
	return text
}

// describeRate says how a workload is driven.
func (w Workload) describeRate() string {
	text := fmt.Sprintf("%d threads", w.Threads)
	if w.Arrival != "closed" {
		text = w.Arrival + " arrivals"
	}
	if w.Target > 0 {
		text += fmt.Sprintf(" at %g a second", w.Target)
	}
	return text
}

// clientLocation is where a client stands.
func (e Experiment) clientLocation(client string) string {
	for _, n := range e.origin.cloud.Nodes {
		if n.Name == client {
			return "at " + n.Site
		}
	}
	return "nowhere"
}

// String says what ends a trial: "12s, or 5% confidence after 5s".
func (s Stop) String() string {
	var parts []string
	if s.Time > 0 {
		parts = append(parts, s.Time.String())
	}
	switch {
	case s.Operations >= Endless:
		parts = append(parts, "until Ctrl-C")
	case s.Operations > 0:
		parts = append(parts, fmt.Sprintf("%d operations", s.Operations))
	}
	if s.AfterEvents != nil {
		parts = append(parts, fmt.Sprintf("%v after the last event", *s.AfterEvents))
	}
	if s.Confidence > 0 {
		parts = append(parts, fmt.Sprintf("goodput known to %v after %v", s.Confidence, s.MinTime))
	}
	return strings.Join(parts, ", or ")
}

// describeCloud writes the cloud that an experiment asks for, and what it asserts.
func (e Experiment) describeCloud(w io.Writer) {
	cloud := e.origin.cloud
	least, most := math.Inf(1), 0.0
	for _, l := range cloud.Links {
		rtt := roundTripMS(l)
		least, most = min(least, rtt), max(most, rtt)
	}
	if n := len(cloud.Links); n > 0 {
		fmt.Fprintf(w, "  %d links, round trips of %.4g to %.4g ms before any scale\n", n, least, most)
	}
	if cloud.Overlay.Routed() {
		fmt.Fprintf(w, "  routes: %s finds ways over several links\n", cloud.Overlay.Kind)
	} else {
		fmt.Fprintf(w, "  routes: each packet takes the one link between its two nodes\n")
	}
	e.describePlacement(w)
	for _, a := range e.Assert {
		fmt.Fprintf(w, "  asserts %s\n", a)
	}
}

func roundTripMS(l topology.Link) float64 {
	return float64(l.AB.Latency+l.BA.Latency) / float64(time.Millisecond)
}

// Links returns the links of the experiment's cloud, as they are before any scale.
func (v Validation) Links() []topology.Link { return v.experiment.origin.cloud.Links }

// eventNotes are notes about events that the end of the trial cuts short.
func (e Experiment) eventNotes() (notes []string) {
	end := time.Duration(e.Stop.Time)
	for _, x := range e.Events {
		if x.At == nil || x.For == nil || x.When != "" || end == 0 {
			continue
		}
		begin, lasts := x.At.Duration(), x.For.Duration()
		if begin+lasts > end {
			name := x.Kind()
			if x.Name != "" {
				name = strings.TrimSpace(x.Name + " (" + name + ")")
			}
			notes = append(notes, fmt.Sprintf("event %s, at %v for %v, outlasts the trial of %v: it is taken back at its end, and its recovery is not seen", name, begin, lasts, end))
		}
	}
	return notes
}
