package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/load/ycsb"
)

// adoptFiles applies settings of property files that the experiment omits.
func (c *checker) adoptFiles() {
	if len(c.e.Workloads) == 0 {
		c.adoptFile("workload", &c.e.Workload)
	}
	for i := range c.e.Workloads {
		c.adoptFile(fmt.Sprintf("workloads[%d].workload", i), &c.e.Workloads[i].Workload)
	}
}

// adoptFile applies the file of the workload at path. checkProperties reports a file that cannot be read.
func (c *checker) adoptFile(path string, w *Workload) {
	entries, err := c.e.propertyEntries(*w)
	if err != nil || len(entries) == 0 {
		return
	}
	p := ycsb.CollectEntries(entries)
	s, err := ycsb.ParseSettings(p)
	if err != nil {
		c.reportProperties(path, w, err)
	}
	counts := ycsb.Properties{"recordcount": "1"} // required by Parse
	for _, name := range []string{"recordcount", "operationcount"} {
		if v, ok := p[name]; ok {
			counts[name] = v
		}
	}
	n, _, err := ycsb.Parse(counts)
	if err != nil {
		c.reportProperties(path, w, err)
		return
	}
	if p["recordcount"] != "" && !c.e.isSet(path+".records") {
		w.Records = n.RecordCount
	}
	if p["threadcount"] != "" && !c.e.isSet(path+".threads") {
		w.Threads = s.Threads
	}
	if !c.e.isSet(path + ".target") {
		w.Target = s.Target
	}
	if c.e.stopsByFile() {
		c.e.Stop.Operations, c.e.Stop.Time = n.OperationCount, unit.Duration(s.MaxExecutionTime)
	}
}

// stopsByFile reports whether a workload's file decides when a trial ends: there is one workload, and the experiment
// gives neither operations nor time.
func (e Experiment) stopsByFile() bool {
	return len(e.Workloads) == 0 && !e.isSet("stop.operations") && !e.isSet("stop.time")
}

// propertyPos is the position of a property in a workload's file.
func (e Experiment) propertyPos(w Workload, name string) (strict.Pos, bool) {
	entries, err := e.propertyEntries(w)
	if err != nil {
		return strict.Pos{}, false
	}
	data, _ := e.readFile(w.File) // cached
	for _, x := range slices.Backward(entries) {
		if x.Name == name {
			return strict.Pos{Source: strict.NewSource(w.File, string(data)), Line: x.Line, Column: 1}, true
		}
	}
	return strict.Pos{}, false
}

// UnusedSettings describes the settings of workloads that have no effect in a trial, one per line.
func (e Experiment) UnusedSettings(databases map[string]database.Database) (notes []string) {
	seen := map[string]bool{}
	for _, c := range e.Plan() {
		if c.Repetition > 1 {
			continue
		}
		for _, note := range c.Experiment.unusedSettings(databases) {
			if !seen[note] {
				seen[note] = true
				notes = append(notes, note)
			}
		}
	}
	return notes
}

func (e Experiment) unusedSettings(databases map[string]database.Database) (notes []string) {
	db, err := e.ResolveDatabase(databases)
	if err != nil {
		return nil // reported by CheckCapabilities
	}
	client := database.ClientProperties(db)
	for _, p := range e.Pools() {
		entries, err := e.propertyEntries(p.Workload)
		if err != nil || p.Workload.isTree() {
			continue
		}
		for _, x := range entries {
			if note := e.fileSettingNote(p, x, client); note != "" {
				notes = append(notes, fmt.Sprintf("%s:%d: %s=%s %s", p.Workload.File, x.Line, x.Name, x.Value, note))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(p.Workload.Properties)) {
			value := p.Workload.Properties[name]
			if why := unusedReason(name, value, client); why != "" {
				notes = append(notes, fmt.Sprintf("%s.properties.%s=%s has no effect with %s: %s", p.path, name, value, e.Database.Label(), why))
			}
		}
	}
	return notes
}

// fileSettingNote describes how a trial treats a line of a workload's file, "" if it does what YCSB does.
func (e Experiment) fileSettingNote(p Pool, x ycsb.Entry, client []string) string {
	w, why, value := p.Workload, x.OverrideReason(), strings.TrimSpace(x.Value)
	given := func(key string, holds float64) {
		n, err := strconv.ParseFloat(value, 64)
		if e.isSet(p.path+"."+key) && (err != nil || n != holds) {
			why = fmt.Sprintf("%s.%s is %v", p.path, key, holds)
		}
	}
	property, ok := w.Properties[x.Name]
	switch {
	case why != "":
	case ok && property != x.Value:
		why = fmt.Sprintf("%s.properties.%s is %s", p.path, x.Name, property)
	case ok:
	case x.Name == "recordcount":
		given("records", float64(w.Records))
	case x.Name == "threadcount":
		given("threads", float64(w.Threads))
	case x.Name == "target":
		given("target", w.Target)
	case x.Name == "operationcount", x.Name == "maxexecutiontime":
		if value != "0" && !e.stopsByFile() {
			return "does not end a trial: stop ends it, " + e.Stop.String()
		}
	case x.Name == "insertstart" && value != "0", x.Name == "insertcount" && value != fmt.Sprint(w.Records):
		return fmt.Sprintf("bounds the records that requests choose; all %d records are loaded", w.Records)
	default:
		why = unusedReason(x.Name, x.Value, client)
	}
	if why == "" {
		return ""
	}
	return "has no effect: " + why
}

// OverriddenSettings describes the settings of workloads that the client properties of a trial's cluster replace.
func (e Experiment) OverriddenSettings(cluster map[string]string) (notes []string) {
	note := func(place, name, value string) {
		if v, ok := cluster[name]; ok && v != value {
			notes = append(notes, fmt.Sprintf("%s%s=%s has no effect: the trial's cluster has %s=%s", place, name, value, name, v))
		}
	}
	for _, p := range e.Pools() {
		entries, err := e.propertyEntries(p.Workload)
		if err != nil {
			continue // reported when the experiment was loaded
		}
		for _, x := range entries {
			if _, replaced := p.Workload.Properties[x.Name]; !replaced && x.OverriddenBy == 0 {
				note(fmt.Sprintf("%s:%d: ", p.Workload.File, x.Line), x.Name, x.Value)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(p.Workload.Properties)) {
			note(p.path+".properties.", name, p.Workload.Properties[name])
		}
	}
	return notes
}

// checkClient refuses unknown properties with the prefix of a database's client properties.
func (e Experiment) checkClient(p Pool, client []string, database string) (ps strict.Problems) {
	given, err := e.Properties(p)
	if err != nil {
		return nil // reported elsewhere
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		prefix, _, dotted := strings.Cut(name, ".")
		own := func(known string) bool { return strings.HasPrefix(known, prefix+".") }
		if !dotted || slices.Contains(client, name) || !slices.ContainsFunc(client, own) {
			continue
		}
		path, message := p.path+".properties."+name, fmt.Sprintf("clients of %s have no property %s", database, name)
		if pos, ok := e.propertyPos(p.Workload, name); ok && p.Workload.Properties[name] == "" {
			ps = append(ps, strict.Problem{Pos: pos, Path: p.path + ".file", Message: message, Hint: suggestName(name, client)})
			continue
		}
		ps = append(ps, e.problem(path, suggestName(name, client), "%s", message))
	}
	return ps
}

// trialEquivalents describes what a trial does instead of some properties of YCSB's client.
var trialEquivalents = map[string]string{
	"label":                    "the record has the experiment's name and description",
	"status":                   "a run shows its own progress",
	"status.interval":          "a run shows its own progress",
	"measurement.interval":     "a trial records both service and response times",
	"hdrhistogram.percentiles": "a trial records whole histograms",
	"hdrhistogram.fileoutput":  "a trial always records its histograms in its directory",
	"hdrhistogram.output.path": "a trial always records its histograms in its directory",
}

// unusedReason is the reason why a property has no effect in an experiment, "" if it has one.
func unusedReason(name, value string, client []string) string {
	if why := trialEquivalents[name]; why != "" {
		return why
	}
	return ycsb.UnusedReason(name, value, client)
}
