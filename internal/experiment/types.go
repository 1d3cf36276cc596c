// Package experiment is the experiment file: what it may say, with every mistake told at
// its line and column; and the plan of trials that a file expands to.
//
//	file ─► Load (parse, --set, --fast, check) ─► Experiment ─► Plan ─► []Cell ─► trials
//
// Nothing here touches the machine beyond reading files. The JSON of an Experiment has the
// keys of the file, so that it is one.
package experiment

import (
	"path/filepath"
	"strings"

	"skerry/internal/base/unit"
	"skerry/internal/event"
	"skerry/internal/machine/inventory"
	"skerry/internal/topology"
)

// Experiment is one experiment: a topology, a database on it and a workload, the
// parameters that vary, and how long each trial measures. Every field that a file leaves
// out has its default here.
type Experiment struct {
	// Name is part of the name of the run directory: letters, digits, "-", "_" and ".".
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	// Description says in a sentence what the experiment is for.
	Description string `yaml:"description" json:"description,omitempty"`
	// Topology is where the database runs: a preset, a topology file, or sites, nodes and links.
	Topology topology.Spec `yaml:"topology" json:"topology" jsonschema:"required"`
	// Client is where the load comes from: a node of its own at a site of the topology.
	Client Client `yaml:"client" json:"client"`
	// Database is what runs on the data nodes.
	Database Database `yaml:"database" json:"database" jsonschema:"required"`
	// Workload is what the client asks for.
	Workload Workload `yaml:"workload" json:"workload,omitzero"`
	// Workloads run side by side in each trial, in place of workload: each has clients and figures
	// of its own. A trial ends when the first of them has ended.
	Workloads []Pool `yaml:"workloads" json:"workloads,omitempty" jsonschema:"maxItems=16"`
	// Scale is the latency scaling factor: every latency of the topology times this.
	Scale float64 `yaml:"scale" json:"scale" jsonschema:"default=1,minimum=0,maximum=1000"`
	// Machines are what labs stand on in place of this machine: the path of a machines file (relative to
	// this file), or a list of machines as such a file has (see machines.md). --machines wins over it.
	Machines inventory.Given `yaml:"machines" json:"machines,omitzero"`
	// Place says on which of the machines nodes stand: the machine's name by a node's, a site's, or
	// "*" for all others; spread has them placed by processors and memory, sites kept together where
	// they fit. Without machines it has no effect.
	Place map[string]string `yaml:"place" json:"place,omitempty"`
	// Between is how packets cross between machines: encrypted, or plain, which is for machines that reach each
	// other by private addresses. Without machines it has no effect.
	Between string `yaml:"between" json:"between,omitempty" jsonschema:"default=encrypted,enum=encrypted,enum=plain"`
	// Links are what links between machines are: emulated, as the topology says; or real, which adds nothing
	// to what lies between the machines, and measures that while trials go on. Links between nodes on one
	// machine are emulated either way. Real links want machines, and take neither scale nor drift.
	Links string `yaml:"links" json:"links,omitempty" jsonschema:"default=emulated,enum=emulated,enum=real"`
	// SetupScale is the scale while the cluster forms and the table is loaded. 0 is no
	// distance at all, so that setting up is quick; the measurement is always at scale.
	SetupScale float64 `yaml:"setup_scale" json:"setup_scale" jsonschema:"default=0,minimum=0,maximum=1000"`
	// Engine emulates the links; auto takes netem where the kernel has it, else userspace.
	Engine string `yaml:"engine" json:"engine" jsonschema:"default=auto,enum=auto,enum=netem,enum=userspace"`
	// Drift is how the links change while a trial measures.
	Drift *Drift `yaml:"drift" json:"drift,omitempty"`
	// Events are what happens while a trial measures (see events.md).
	Events []event.Event `yaml:"events" json:"events,omitempty"`
	// Warmup runs the workload before the measurement; it is shown, but not counted.
	Warmup unit.Duration `yaml:"warmup" json:"warmup" jsonschema:"default=2s"`
	// Stop ends a trial at whichever of its limits is reached first.
	Stop Stop `yaml:"stop" json:"stop"`
	// Matrix lists what varies: each key is a path in this file (scale, workload.threads),
	// each value a list. Every combination is a cell.
	Matrix Matrix `yaml:"matrix" json:"matrix,omitempty"`
	// Repetitions is how often every cell runs.
	Repetitions int `yaml:"repetitions" json:"repetitions" jsonschema:"default=1,minimum=1,maximum=1000"`
	// Retries is how often a suspect trial is run again, after all others, where what made it
	// suspect is this machine's and may pass: processors that were taken away, packets or
	// operations that came late. What it replaces is kept. Cores that were full would be full again.
	Retries int `yaml:"retries" json:"retries" jsonschema:"default=1,minimum=0,maximum=10"`
	// Parallel is how many trials may run at the same time, each on a lab of its own: a number, or
	// auto for as many as the processors and the memory that they really used leave room for,
	// which bounds a number too. What became suspect by that is run again by itself (retries).
	Parallel Parallel `yaml:"parallel" json:"parallel" jsonschema:"default=1"`
	// Spread is what an engine of several machines (--on) hands over as a whole: each trial by itself
	// (trial), which ends soonest; all cells of a repetition (repetition), so that cells are compared on one machine and
	// repetitions tell machines apart; or all repetitions of a cell (cell), so that machines add nothing to their spread.
	Spread string `yaml:"spread" json:"spread" jsonschema:"default=trial,enum=trial,enum=repetition,enum=cell"`
	// Reuse lets trials that ask for the same cloud and the same database run on one lab and
	// one cluster, one after another: the table is emptied and loaded afresh before each.
	// That is for databases that take minutes to form. Without it every trial has its own,
	// and none finds what another one left.
	Reuse bool `yaml:"reuse" json:"reuse,omitempty"`
	// ClusterWarmup drives a new cluster for so long before its first trial, as fast as it goes, at setup_scale, and with
	// each workload of the trials that will share it for an equal part. Then the table is emptied. It is not
	// counted, and events.jsonl tells of it. The first minutes of a database that runs on Java are slower without it, since
	// its code is compiled as it is used.
	ClusterWarmup unit.Duration `yaml:"cluster_warmup" json:"cluster_warmup,omitempty"`
	// Seed fixes every random choice, the order of the trials among them.
	Seed uint64 `yaml:"seed" json:"seed" jsonschema:"default=1"`
	// Audit reads every acknowledged write back when all events have been reverted.
	Audit Audit `yaml:"audit" json:"audit,omitzero"`
	// Assert lists what every trial must reach: "read.p95 < 300ms", "availability > 99.9%",
	// "lost_writes == 0", "events.leave.recover < 60s". A run in which one does not hold
	// ends with exit code 3.
	Assert []string `yaml:"assert" json:"assert,omitempty"`
	// Recovery is what recovery from events is measured by.
	Recovery Recovery `yaml:"recovery" json:"recovery"`
	// Fidelity is what a trial may deviate from what was asked and still be valid.
	Fidelity Fidelity `yaml:"fidelity" json:"fidelity"`
	// Fast is what --fast changes, with the paths and values of --set. A smoke run must
	// still touch every part of the experiment.
	Fast Settings `yaml:"fast" json:"fast,omitempty"`

	origin *origin
}

// Alternatives: there is one workload, or there are several.
func (Experiment) Alternatives() [][]string { return [][]string{{"workload", "workloads"}} }

// Client is the node that the load driver runs on.
type Client struct {
	// Site is where it stands; the first site where it is left out. Its links are those
	// of that site, and to the site's own nodes they are the topology's site_rtt.
	Site string `yaml:"site" json:"site"`
	// CPU is a quota in cores; 0 is no limit.
	CPU float64 `yaml:"cpu" json:"cpu,omitempty" jsonschema:"minimum=0"`
	// Memory is a limit; 0 is none.
	Memory unit.Bytes `yaml:"memory" json:"memory,omitempty"`
}

// Shorthand: "client: Singapore" is "client: {site: Singapore}".
func (Client) Shorthand() string { return "site" }

// Database is the database under test.
type Database struct {
	// Name of the database, or NAME@SERIES for a series other than the default ("redis@7.0").
	Name string `yaml:"name" json:"name,omitempty"`
	// Exec is a file that describes a database of one's own (relative to this file), in
	// place of name: see own-database.md.
	Exec string `yaml:"exec" json:"exec,omitempty"`
	// Version that the installation must have, or begin with ("5.0"). It selects one of several installed series.
	Version string `yaml:"version" json:"version,omitempty"`
	// Count is how many of the topology's data nodes carry it, the first ones; 0 is all.
	Count int `yaml:"count" json:"count,omitempty" jsonschema:"minimum=0"`
	// Nodes names the data nodes that carry it, in place of count.
	Nodes []string `yaml:"nodes" json:"nodes,omitempty"`
	// Options are the database's own settings; its page lists them.
	Options map[string]any `yaml:"options" json:"options,omitempty"`
}

// Shorthand: "database: redis" is "database: {name: redis}".
func (Database) Shorthand() string { return "name" }

// Alternatives: the database is named or described, the nodes are counted or named.
func (Database) Alternatives() [][]string {
	return [][]string{{"name", "exec"}, {"count", "nodes"}}
}

// Label is how messages and results call the database.
func (d Database) Label() string {
	if d.Exec != "" {
		return "exec:" + d.Exec
	}
	return d.Name
}

// Key tells installations apart: the label, with the version where one is asked for.
func (d Database) Key() string {
	if d.Version != "" {
		return d.Label() + "@" + d.Version
	}
	return d.Label()
}

// ShortLabel is what results call a database by its label or key: one of one's own by its file's name, without folder
// and ending.
func ShortLabel(label string) string {
	file, own := strings.CutPrefix(label, "exec:")
	if !own {
		return label
	}
	file, version, asked := strings.Cut(file, "@")
	short := "exec:" + strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if asked {
		short += "@" + version
	}
	return short
}

// Workload is what is asked of the database and how fast.
type Workload struct {
	// Name is one of YCSB's workloads, or, for databases that are directory trees, mdtest
	// (its phases) or namespace (the mix of operations of production file systems).
	Name string `yaml:"name" json:"name,omitempty" jsonschema:"enum=a,enum=b,enum=c,enum=d,enum=e,enum=f,enum=mdtest,enum=namespace"`
	// File is a YCSB property file (relative to this file), in place of name. Its recordcount, threadcount and target hold
	// where records, threads and target are left out. Notes name what in it has no effect.
	File string `yaml:"file" json:"file,omitempty"`
	// Records is how many the table holds when the measurement begins; of a directory tree,
	// how many files.
	Records int64 `yaml:"records" json:"records" jsonschema:"default=1000,minimum=1"`
	// ExpectedOperations is for how many operations the keys of a zipfian workload that inserts (e) are drawn, as
	// YCSB draws them for its operationcount. Left out, it is stop.operations, else the operationcount of the
	// workload or of its file, else records. Of the records that are inserted, requests choose the first
	// 2 x expected_operations x insertproportion. Other workloads do not use it.
	ExpectedOperations int64 `yaml:"expected_operations" json:"expected_operations,omitempty" jsonschema:"minimum=1"`
	// Threads is how many operations are under way at once in a closed loop, and how many
	// connections there are.
	Threads int `yaml:"threads" json:"threads" jsonschema:"default=16,minimum=1,maximum=100000"`
	// Target is how many operations a second are asked for; 0 is as many as it can.
	Target float64 `yaml:"target" json:"target,omitempty" jsonschema:"minimum=0"`
	// Arrival says when operations are sent. closed: a thread sends its next one when the
	// last is done. constant and poisson: an open loop at the target, evenly spaced or
	// at random, whatever the database does.
	Arrival string `yaml:"arrival" json:"arrival" jsonschema:"default=closed,enum=closed,enum=constant,enum=poisson"`
	// Stall is what a client with a target does about operations that were due while it was
	// held up: catchup sends them all, skip leaves them out and counts them as dropped.
	// Left out, a closed loop catches up and an open one skips.
	Stall string `yaml:"stall" json:"stall,omitempty" jsonschema:"enum=catchup,enum=skip"`
	// InFlight bounds the operations under way in an open loop; beyond it they are
	// dropped. 0 is 256.
	InFlight int `yaml:"in_flight" json:"in_flight,omitempty" jsonschema:"minimum=0"`
	// Timeout is how long an operation may take before its outcome is unknown.
	Timeout unit.Duration `yaml:"timeout" json:"timeout" jsonschema:"default=10s"`
	// Properties are YCSB's own (readproportion, fieldlength, requestdistribution ...);
	// they win over those of name or file. mdtest and namespace have files (in a directory;
	// 100), shared (the share of operations in shared directories; 0), home (near: own
	// directories are where the client stands; all: at all nodes in turn), page (entries of
	// a listing; 100); namespace has listproportion, statproportion, createproportion,
	// mkdirproportion, renameproportion and removeproportion.
	Properties map[string]string `yaml:"properties" json:"properties,omitempty"`
	// Probes are short jobs of the same workload beside it.
	Probes *Probes `yaml:"probes" json:"probes,omitempty"`
}

// Probes are short jobs, one after the other while the measurement lasts: each a client of
// its own on the client's node, which connects, does its operations as fast as it can, and
// ends. What each of them saw is in the summary; the workload's own figures leave them out.
type Probes struct {
	// Operations of each job.
	Operations int64 `yaml:"operations" json:"operations" jsonschema:"default=100,minimum=1"`
	// Every is the time from the begin of one to the begin of the next. One that takes
	// longer is followed at once.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"default=5s"`
	// Threads of each job.
	Threads int `yaml:"threads" json:"threads" jsonschema:"default=1,minimum=1"`
}

// Shorthand: "workload: a" is "workload: {name: a}".
func (Workload) Shorthand() string { return "name" }

// Alternatives: a workload has a name or is a file.
func (Workload) Alternatives() [][]string { return [][]string{{"name", "file"}} }

// Endless is a stop.operations that no trial reaches: it runs until it is interrupted.
const Endless = 1 << 50

// Stop holds the limits of a trial's measurement. Where neither operations nor time is
// given, they are the operationcount and maxexecutiontime of the workload's file; without those, time is 30s.
type Stop struct {
	// Operations ends it after so many.
	Operations int64 `yaml:"operations" json:"operations,omitempty" jsonschema:"minimum=1"`
	// Time ends it after so long.
	Time unit.Duration `yaml:"time" json:"time,omitempty"`
	// Confidence ends it as soon as the half-width of the 95 % confidence interval of the
	// goodput is narrower than this share of its mean (batch means; see fidelity.md).
	Confidence unit.Fraction `yaml:"confidence" json:"confidence,omitempty"`
	// MinTime is the shortest measurement that confidence may end.
	MinTime unit.Duration `yaml:"min_time" json:"min_time" jsonschema:"default=5s"`
	// AfterEvents ends it so long after the last event was over.
	AfterEvents *unit.Duration `yaml:"after_events" json:"after_events,omitempty"`
}

// Fidelity holds the limits beyond which a trial is suspect (see fidelity.md).
type Fidelity struct {
	// RTTError is the largest |measured - set| of the median round trip of any link.
	RTTError unit.Duration `yaml:"rtt_error" json:"rtt_error" jsonschema:"default=0.5ms"`
	// BandwidthError is the largest relative error of the bandwidth of any link.
	BandwidthError unit.Fraction `yaml:"bandwidth_error" json:"bandwidth_error" jsonschema:"default=5%"`
	// EmulatorLate is how late the emulator may hand packets over, 99th percentile.
	EmulatorLate unit.Duration `yaml:"emulator_late" json:"emulator_late" jsonschema:"default=1ms"`
	// ClientLate is how late the driver may send operations, 99th percentile.
	ClientLate unit.Duration `yaml:"client_late" json:"client_late" jsonschema:"default=5ms"`
	// EventLate is how late events may begin, 99th percentile.
	EventLate unit.Duration `yaml:"event_late" json:"event_late" jsonschema:"default=20ms"`
	// ClientCPU is the share of the cores it may use that the driver may really use.
	ClientCPU unit.Fraction `yaml:"client_cpu" json:"client_cpu" jsonschema:"default=90%"`
	// HostCPU is how busy the machine may be on average.
	HostCPU unit.Fraction `yaml:"host_cpu" json:"host_cpu" jsonschema:"default=95%"`
	// Steal is the share of CPU time that the hypervisor may take for others.
	Steal unit.Fraction `yaml:"steal" json:"steal" jsonschema:"default=5%"`
	// Others is the share of the machine's cores that programs which are none of the run's may use
	// on average.
	Others unit.Fraction `yaml:"others" json:"others" jsonschema:"default=10%"`
	// Moved is by how much response times and goodput may change when the stretches are left
	// out in which processors were taken from the driver.
	Moved unit.Fraction `yaml:"moved" json:"moved" jsonschema:"default=5%"`
}

// Drift changes the links while a trial measures: exactly one of steps, trace and
// mobility. Time counts from the start of the measurement; during set-up and warm-up the
// links are as at 0s, except that a link which loses every packet then does so from the start of the measurement on.
type Drift struct {
	// Steps change all links at once, or some of them.
	Steps []Step `yaml:"steps" json:"steps,omitempty"`
	// Trace replays a CSV file (relative to this file): each row changes one direction of a
	// link. Columns are time, from, to (nodes or sites; empty for all) and any of latency
	// (one way), bandwidth and loss; an empty cell leaves that as it is. A column called
	// time_s or latency_ms has cells without units. A trace whose rows are all after the end of the trial is refused, as
	// are Unix time stamps; rows that a trial does not reach are noted.
	Trace string `yaml:"trace" json:"trace,omitempty" jsonschema:"example=trace.csv"`
	// Mobility moves sites: latency and bandwidth follow from how far apart they are.
	Mobility *topology.Mobility `yaml:"mobility" json:"mobility,omitempty"`
	// Every is how often the links are brought up to date.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"default=100ms"`
}

// Alternatives: links drift in one way.
func (Drift) Alternatives() [][]string { return [][]string{{"steps", "trace", "mobility"}} }

// Step is one change of links.
type Step struct {
	// At is when, after the measurement began.
	At unit.Duration `yaml:"at" json:"at" jsonschema:"required"`
	// Scale replaces the experiment's scale from here on.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"minimum=0,maximum=1000"`
	// Links are what changes on single links; it is not multiplied by the scale. With a name it
	// is one of a pair's links, "A~B#1" for one that the topology gives no name; without, all of them.
	Links []topology.LinkSpec `yaml:"links" json:"links,omitempty"`
}

// Recovery is what recovery from an event is measured by (see recovery.md).
type Recovery struct {
	// Baseline is the time before an event that it is compared with.
	Baseline unit.Duration `yaml:"baseline" json:"baseline" jsonschema:"default=60s"`
	// Goodput is the share of the baseline's goodput that a second must reach.
	Goodput unit.Fraction `yaml:"goodput" json:"goodput" jsonschema:"default=90%"`
	// P99 is how many times the baseline's p99 a second may take.
	P99 float64 `yaml:"p99" json:"p99" jsonschema:"default=2,minimum=1"`
	// Hold is for how long seconds must be as before until it has recovered.
	Hold unit.Duration `yaml:"hold" json:"hold" jsonschema:"default=10s"`
	// SLA is the p99 above which a second violates the service level; left out, it is
	// p99 times the baseline's.
	SLA unit.Duration `yaml:"sla" json:"sla,omitempty"`
}

// Audit reads every acknowledged write back (see audit.md).
type Audit struct {
	// Enabled turns it on.
	Enabled bool `yaml:"enabled" json:"enabled"`
	// HistoryKeys is of how many records every operation is recorded and checked for
	// linearizability; 0 is none.
	HistoryKeys int `yaml:"history_keys" json:"history_keys" jsonschema:"default=8,minimum=0,maximum=1000"`
	// Settle is how long copies that are older than what was acknowledged may take to catch
	// up before they count.
	Settle unit.Duration `yaml:"settle" json:"settle" jsonschema:"default=10s"`
}

// Shorthand: "audit: true" is "audit: {enabled: true}".
func (Audit) Shorthand() string { return "enabled" }
