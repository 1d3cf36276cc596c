package experiment

import (
	"errors"
	"fmt"
	"io"
	"maps"
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

// Validation is the result of checking an experiment file without running it.
type Validation struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Problems []Mistake `json:"problems,omitempty"`
	// Name, Trials, EstimateS and Plan are set for a valid file. EstimateS is the estimated maximum time of the run in
	// seconds, 0 if unknown.
	Name      string  `json:"name,omitempty"`
	Trials    int     `json:"trials,omitempty"`
	EstimateS float64 `json:"estimate_s,omitempty"`
	Plan      []Cell  `json:"plan,omitempty"` // in the order of running
	// Placement is the placement of nodes, as far as the machines file determines it; nil on this machine.
	Placement *placement.Plan `json:"places,omitempty"`
	// Notes describe settings without effect, and limits of this machine.
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

// ListMistakes converts an error of the file at path: strict.Problems give one mistake each, any other error gives one.
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

// Validate checks the experiment file at path with the settings of --set and --fast.
func Validate(path string, sets []string, fast bool, databases map[string]database.Database) Validation {
	e, err := Load(path, sets, fast)
	return validate(path, e, err, databases)
}

// ValidateText checks the text of an experiment file; path is its origin.
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
		v.Notes = slices.Concat(v.experiment.UnusedSettings(databases), v.experiment.eventNotes(), v.experiment.allDriftNotes(),
			v.experiment.commandNotes(databases))
		v.Placement, v.err = v.experiment.Placement() // checked before
		if d, known := v.experiment.Estimate(); known {
			v.EstimateS = d.Seconds()
		}
	}
	return v
}

// NoteMissingDatabases adds a note for each database of a valid file that is not installed.
func (v *Validation) NoteMissingDatabases(databases map[string]database.Database) {
	seen := map[string]bool{}
	for _, c := range v.Plan {
		needed := c.Experiment.Installations()
		for _, key := range slices.Sorted(maps.Keys(needed)) {
			if seen[key] {
				continue
			}
			seen[key] = true
			db, err := c.Experiment.ResolveDatabase(databases)
			if err == nil {
				_, err = database.Locate(db, needed[key], "")
			}
			if err != nil {
				v.Notes = append(v.Notes, strings.TrimSuffix(fmt.Sprintf("run cannot start on this machine: %v; %s", err, advice.Of(err)), "; "))
			}
		}
	}
}

// NoteDiskLimits adds notes on disk limits that this machine cannot enforce. disks reports whether it can; it is called
// only if the experiment limits disks.
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
		v.Notes = append(v.Notes, fmt.Sprintf("disk limits of flavors are not enforced on this machine: %v", err))
	}
	for _, kind := range kinds {
		v.Notes = append(v.Notes, fmt.Sprintf("event %s will fail on this machine: %v", kind, err))
	}
}

// NoteCongestionControls adds a note for each congestion control of a valid file that is not among the kernel's
// available ones.
func (v *Validation) NoteCongestionControls(available []string) {
	for _, c := range v.Plan {
		cloud, err := c.Experiment.Cloud()
		control := cloud.TCP["congestion_control"]
		if err != nil || control == "" || slices.Contains(available, control) {
			continue
		}
		note := fmt.Sprintf("congestion control %s is not loaded on this machine (%s): nodes get it if root runs the experiment and the "+
			"kernel has the module tcp_%s",
			control, strings.Join(available, ", "), control)
		if !slices.Contains(v.Notes, note) {
			v.Notes = append(v.Notes, note)
		}
	}
}

// boundsDisks reports whether any flavor limits disks, and returns the kinds of events that do.
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

// Err is nil for a valid file.
func (v Validation) Err() error { return v.err }

// Describe writes a summary of the run and, with plan, every trial in the order of execution.
func (v Validation) Describe(w io.Writer, plan bool) error {
	e := v.experiment
	about := ""
	if e.Description != "" {
		about = ": " + e.Description
	}
	fmt.Fprintf(w, "%s is valid%s\n", v.File, about)
	e.describeDatabase(w)
	for _, p := range e.Workloads {
		fmt.Fprintf(w, "  side by side: %s, %s, %s\n", p.Label(), p.Workload.describeRate(), e.clientLocation(p.Node(e)))
	}
	fmt.Fprintf(w, "  %s\n", describeTrials(e))
	if e.ClusterWarmup > 0 {
		fmt.Fprintf(w, "  new clusters: warm-up %v\n", e.ClusterWarmup)
	}
	fmt.Fprintf(w, "  each trial: warm-up %v, then %s\n", e.Warmup, e.Stop)
	if len(e.Events) > 0 {
		fmt.Fprintf(w, "  events: %s\n", e.describeEvents())
	}
	if e.Database.Cluster == nil {
		e.describeCloud(w)
	}
	for _, a := range e.Assert {
		fmt.Fprintf(w, "  asserts %s\n", a)
	}
	if d, known := e.Estimate(); known {
		fmt.Fprintf(w, "  at most about %v in total\n", roundEstimate(d))
	} else {
		fmt.Fprintf(w, "  duration depends on the database; set stop.time to bound it\n")
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

// describeTrials lists the parameters that vary: "4 trials: workload a, c x scale 0.2, 1".
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

func (w Workload) describeRate() string {
	text := fmt.Sprintf("%d threads", w.Threads)
	if w.Arrival != "closed" {
		text = w.Arrival + " arrivals"
	}
	if w.Target > 0 {
		text += fmt.Sprintf(" at %g per second", w.Target)
	}
	return text
}

func (e Experiment) clientLocation(client string) string {
	for _, n := range e.origin.cloud.Nodes {
		if n.Name == client {
			return "at " + n.Site
		}
	}
	return "without a site"
}

// String describes the end of a trial: "12s, or 5% confidence after 5s".
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
		parts = append(parts, fmt.Sprintf("goodput confidence %v after %v", s.Confidence, s.MinTime))
	}
	return strings.Join(parts, ", or ")
}

// describeDatabase writes where the database runs, and what a run changes on a cluster that Skerry did not start.
func (e Experiment) describeDatabase(w io.Writer) {
	k := e.Database.Cluster
	if k == nil {
		fmt.Fprintf(w, "  %s on %d nodes, client %s\n", e.Database.Label(), len(e.DataNodes()), e.clientLocation(e.ClientNode()))
		return
	}
	fmt.Fprintf(w, "  %s at %s, clients on this machine\n", e.Database.Label(), k)
	if access := k.Access.String(); access != "" {
		fmt.Fprintf(w, "  %s\n", access)
	}
	records := int64(0)
	for _, c := range e.Plan() {
		records = max(records, c.Experiment.Pools()[0].Workload.Records)
	}
	fmt.Fprintf(w, "  each trial writes up to %d records, and what its workload inserts, to a table skerry_... of its own, and drops it\n", records)
}

// describeCloud writes the cloud of an experiment.
func (e Experiment) describeCloud(w io.Writer) {
	cloud := e.origin.cloud
	least, most := math.Inf(1), 0.0
	for _, l := range cloud.Links {
		rtt := roundTripMS(l)
		least, most = min(least, rtt), max(most, rtt)
	}
	if n := len(cloud.Links); n > 0 {
		fmt.Fprintf(w, "  %d links, round trips of %.4g to %.4g ms at scale 1\n", n, least, most)
	}
	if cloud.Overlay.Routed() {
		fmt.Fprintf(w, "  routes: %s routes over several links\n", cloud.Overlay.Kind)
	} else {
		fmt.Fprintf(w, "  routes: each packet uses the link between its two nodes\n")
	}
	e.describePlacement(w)
}

func roundTripMS(l topology.Link) float64 {
	return float64(l.AB.Latency+l.BA.Latency) / float64(time.Millisecond)
}

// Links returns the links of the experiment's cloud, at scale 1.
func (v Validation) Links() []topology.Link { return v.experiment.origin.cloud.Links }

// eventNotes are notes on events that the end of the trial cuts short.
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
			notes = append(notes, fmt.Sprintf("event %s, at %v for %v, outlasts the trial of %v: its recovery is not measured", name, begin, lasts,
				end))
		}
	}
	return notes
}
