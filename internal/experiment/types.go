// Package experiment reads experiment files: it reports every mistake with line and column, and expands a file
// into the plan of its trials.
//
//	file ─► Load (parse, --set, --fast, check) ─► Experiment ─► Plan ─► []Cell ─► trials
//
// The package only reads files. An Experiment in JSON has the keys of the file, so it is an experiment file too.
package experiment

import (
	"path/filepath"
	"strings"

	"skerry/internal/base/unit"
	"skerry/internal/database/external"
	"skerry/internal/event"
	"skerry/internal/machine/inventory"
	"skerry/internal/topology"
)

// Experiment is one experiment: a topology, a database on it, a workload, the parameters that vary, and the length of
// each trial. A field that the file omits has its default here.
type Experiment struct {
	// Name is part of the name of the run directory. It consists of letters, digits, "-", "_" and ".".
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	// Description states the purpose of the experiment in one sentence.
	Description string `yaml:"description" json:"description,omitempty"`
	// Topology is a preset, the path of a topology file, or sites, nodes and links. It is required unless database.cluster
	// is given.
	Topology topology.Spec `yaml:"topology" json:"topology,omitzero"`
	// Client is the node that generates the load, at a site of the topology.
	Client Client `yaml:"client" json:"client"`
	// Database is the system that runs on the data nodes.
	Database Database `yaml:"database" json:"database" jsonschema:"required"`
	// Workload is the load that the client generates.
	Workload Workload `yaml:"workload" json:"workload,omitzero"`
	// Workloads run side by side in each trial, instead of workload. Each has its own clients and figures. A trial ends
	// when the first workload ends.
	Workloads []Pool `yaml:"workloads" json:"workloads,omitempty" jsonschema:"maxItems=16"`
	// Scale is a factor on every latency of the topology.
	Scale float64 `yaml:"scale" json:"scale" jsonschema:"default=1,minimum=0,maximum=1000"`
	// Machines host the labs instead of this machine: the path of a machines file (relative to this file), or a list of
	// machines as in such a file (see machines.md). --machines overrides it.
	Machines inventory.Ref `yaml:"machines" json:"machines,omitzero"`
	// Place assigns nodes to machines. A key is a node, a site, or "*" for all others; a value is a machine's name, or
	// spread. Spread places nodes by CPU and memory and keeps sites together where they fit. It has no effect without
	// machines.
	Place map[string]string `yaml:"place" json:"place,omitempty"`
	// Between is how packets cross between machines: encrypted, or plain. Plain requires machines that reach each other
	// by private addresses. It has no effect without machines.
	Between string `yaml:"between" json:"between,omitempty" jsonschema:"default=encrypted,enum=encrypted,enum=plain"`
	// Links is emulated, where links between machines follow the topology, or real. Real adds nothing to the network
	// between the machines, and measures it during trials. Links within one machine are always emulated. Real links
	// require machines, and allow neither scale nor drift.
	Links string `yaml:"links" json:"links,omitempty" jsonschema:"default=emulated,enum=emulated,enum=real"`
	// SetupScale is the scale while the cluster forms and the table is loaded. 0 removes all distance, so that setup is
	// fast. The measurement always runs at scale.
	SetupScale float64 `yaml:"setup_scale" json:"setup_scale" jsonschema:"default=0,minimum=0,maximum=1000"`
	// Engine emulates the links. auto selects netem if the kernel provides it, else userspace.
	Engine string `yaml:"engine" json:"engine" jsonschema:"default=auto,enum=auto,enum=netem,enum=userspace"`
	// Drift changes the links while a trial measures.
	Drift *Drift `yaml:"drift" json:"drift,omitempty"`
	// Events are faults and other changes during a trial (see events.md).
	Events []event.Event `yaml:"events" json:"events,omitempty"`
	// Warmup runs the workload before the measurement. Results show it but do not count it.
	Warmup unit.Duration `yaml:"warmup" json:"warmup" jsonschema:"default=2s"`
	// Stop ends a trial at the first limit that is reached.
	Stop Stop `yaml:"stop" json:"stop"`
	// Matrix lists the parameters that vary: each key is a path in this file (scale, workload.threads), each value a
	// list. Every combination is a cell.
	Matrix Matrix `yaml:"matrix" json:"matrix,omitempty"`
	// Repetitions is the number of trials of each cell.
	Repetitions int `yaml:"repetitions" json:"repetitions" jsonschema:"default=1,minimum=1,maximum=1000"`
	// Retries is how often a suspect trial is repeated, after all others, if its cause is transient: stolen CPU time,
	// late packets or late operations. The replaced attempt is kept. A trial that saturated the CPU is not repeated,
	// since it would do so again.
	Retries int `yaml:"retries" json:"retries" jsonschema:"default=1,minimum=0,maximum=10"`
	// Parallel is the number of trials that may run at the same time, each on its own lab. auto derives the number from
	// the CPU and memory that trials really use; these also bound a given number. A trial that becomes suspect by
	// parallelism is repeated alone (retries).
	Parallel Parallel `yaml:"parallel" json:"parallel" jsonschema:"default=1"`
	// Spread is the unit that an engine with several machines (--on) schedules: trial is fastest; repetition keeps all
	// cells of a repetition on one machine, so that cells are compared on one machine; cell keeps all repetitions of a
	// cell on one machine, so that machines add nothing to their variance.
	Spread string `yaml:"spread" json:"spread" jsonschema:"default=trial,enum=trial,enum=repetition,enum=cell"`
	// Reuse runs trials with the same cloud and database on one lab and one cluster, one after another. The table is
	// emptied and loaded again before each trial. Use it for databases that take minutes to form. Without it, every
	// trial has its own lab and cluster.
	Reuse bool `yaml:"reuse" json:"reuse,omitempty"`
	// ClusterWarmup drives a new cluster before its first trial, at full speed and setup_scale, divided equally among
	// the workloads of the trials that share the cluster. Then the table is emptied. events.jsonl records it; results
	// do not count it. Databases on the JVM need it, since their code is compiled during the first minutes.
	ClusterWarmup unit.Duration `yaml:"cluster_warmup" json:"cluster_warmup,omitempty"`
	// Seed determines every random choice, including the order of the trials.
	Seed uint64 `yaml:"seed" json:"seed" jsonschema:"default=1"`
	// Audit reads every acknowledged write back after all events are reverted.
	Audit Audit `yaml:"audit" json:"audit,omitzero"`
	// Assert lists conditions on every trial: "read.p95 < 300ms", "availability > 99.9%", "lost_writes == 0",
	// "events.leave.recover < 60s". A run in which a condition fails ends with exit code 3.
	Assert []string `yaml:"assert" json:"assert,omitempty"`
	// Recovery sets how recovery from events is measured.
	Recovery Recovery `yaml:"recovery" json:"recovery"`
	// Fidelity sets the limits beyond which a trial is suspect.
	Fidelity Fidelity `yaml:"fidelity" json:"fidelity"`
	// Fast lists the settings that --fast applies, with the paths and values of --set. A smoke run should still use
	// every part of the experiment.
	Fast Settings `yaml:"fast" json:"fast,omitempty"`

	origin *origin
}

// Alternatives excludes workload and workloads from each other.
func (Experiment) Alternatives() [][]string { return [][]string{{"workload", "workloads"}} }

// Client is the node that runs the load driver.
type Client struct {
	// Site is the location of the client, by default the first site. The client has the links of this site; its links
	// to the site's own nodes have the topology's site_rtt.
	Site string `yaml:"site" json:"site"`
	// CPU is a quota in cores; 0 means no limit.
	CPU float64 `yaml:"cpu" json:"cpu,omitempty" jsonschema:"minimum=0"`
	// Memory is a limit; 0 means no limit.
	Memory unit.Bytes `yaml:"memory" json:"memory,omitempty"`
}

// Shorthand lets "client: Singapore" stand for "client: {site: Singapore}".
func (Client) Shorthand() string { return "site" }

// Database is the database under test.
type Database struct {
	// Name of the database, or NAME@SERIES for a series other than the default ("redis@7.0").
	Name string `yaml:"name" json:"name,omitempty"`
	// Exec is a file that describes a custom database (relative to this file), instead of name: see own-database.md.
	Exec string `yaml:"exec" json:"exec,omitempty"`
	// Version that the installation must have, or begin with ("5.0"). It selects one of several installed series.
	Version string `yaml:"version" json:"version,omitempty"`
	// Count is the number of data nodes that run the database, from the first one; 0 means all.
	Count int `yaml:"count" json:"count,omitempty" jsonschema:"minimum=0"`
	// Nodes names the data nodes that run the database, instead of count.
	Nodes []string `yaml:"nodes" json:"nodes,omitempty"`
	// Options are settings of the database; its page lists them.
	Options map[string]any `yaml:"options" json:"options,omitempty"`
	// Cluster is a running cluster that Skerry did not start, instead of a topology: its servers, or commands that start
	// it and print them (see howto/own-cluster.md). Skerry writes to a table of its own there, and drops it.
	Cluster *external.ClusterSpec `yaml:"cluster" json:"cluster,omitempty"`
}

// Shorthand lets "database: redis" stand for "database: {name: redis}".
func (Database) Shorthand() string { return "name" }

// Alternatives excludes name and exec from each other, and count and nodes.
func (Database) Alternatives() [][]string {
	return [][]string{{"name", "exec"}, {"count", "nodes", "cluster"}, {"options", "cluster"}, {"version", "cluster"}}
}

// Label is the name of the database in messages and results.
func (d Database) Label() string {
	if d.Exec != "" {
		return "exec:" + d.Exec
	}
	return d.Name
}

// Key identifies an installation: the label, with the version if the experiment requests one.
func (d Database) Key() string {
	if d.Cluster != nil {
		return d.Label() + "@" + d.Cluster.ID()
	}
	if d.Version != "" {
		return d.Label() + "@" + d.Version
	}
	return d.Label()
}

// resultLabel is the database in the parameters of a cell.
func (d Database) resultLabel() string {
	if d.Cluster != nil {
		return ShortLabel(d.Label())
	}
	return ShortLabel(d.Key())
}

// ShortLabel shortens a label or key for results: a custom database is named after its file, without folder and
// extension.
func ShortLabel(label string) string {
	file, own := strings.CutPrefix(label, "exec:")
	if !own {
		return label
	}
	file, version, pinned := strings.Cut(file, "@")
	short := "exec:" + strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if pinned {
		short += "@" + version
	}
	return short
}

// Workload is the operations that the client sends, and their rate.
type Workload struct {
	// Name is a workload of YCSB, or, for databases that are directory trees, mdtest (its phases) or namespace (the mix
	// of operations of production file systems).
	Name string `yaml:"name" json:"name,omitempty" jsonschema:"enum=a,enum=b,enum=c,enum=d,enum=e,enum=f,enum=mdtest,enum=namespace"`
	// File is a YCSB property file (relative to this file), instead of name. Its recordcount, threadcount and target
	// apply if records, threads and target are omitted. Notes list the settings in it that have no effect.
	File string `yaml:"file" json:"file,omitempty"`
	// Records is the number of records in the table, or of files in a directory tree, when the measurement begins.
	Records int64 `yaml:"records" json:"records" jsonschema:"default=1000,minimum=1"`
	// ExpectedOperations is the number of operations for which a zipfian workload with inserts (e) draws keys, as YCSB
	// does with operationcount. The default is stop.operations, else the operationcount of the workload or its file,
	// else records. Of the inserted records, requests choose the first 2 x expected_operations x insertproportion.
	// Other workloads ignore it.
	ExpectedOperations int64 `yaml:"expected_operations" json:"expected_operations,omitempty" jsonschema:"minimum=1"`
	// Threads is the number of concurrent operations in a closed loop, and the number of connections.
	Threads int `yaml:"threads" json:"threads" jsonschema:"default=16,minimum=1,maximum=100000"`
	// Target is the rate in operations per second; 0 means as fast as possible.
	Target float64 `yaml:"target" json:"target,omitempty" jsonschema:"minimum=0"`
	// Arrival is closed, constant or poisson. In a closed loop, a thread sends its next operation after the last one
	// ends. constant and poisson are open loops at the target rate, evenly spaced or random, independent of the
	// database.
	Arrival string `yaml:"arrival" json:"arrival" jsonschema:"default=closed,enum=closed,enum=constant,enum=poisson"`
	// Stall applies to a client with a target, for operations that came due while the client was held up: catchup sends
	// them all, skip counts them as dropped. By default a closed loop catches up and an open loop skips.
	Stall string `yaml:"stall" json:"stall,omitempty" jsonschema:"enum=catchup,enum=skip"`
	// InFlight limits the concurrent operations of an open loop; further operations are dropped. 0 means 256.
	InFlight int `yaml:"in_flight" json:"in_flight,omitempty" jsonschema:"minimum=0"`
	// Timeout is the time after which the outcome of an operation is unknown.
	Timeout unit.Duration `yaml:"timeout" json:"timeout" jsonschema:"default=10s"`
	// Properties are YCSB's properties (readproportion, fieldlength, requestdistribution ...); they override those of
	// name or file. mdtest and namespace accept files (in a directory; 100), shared (the share of operations in shared
	// directories; 0), home (near: own directories are at the client's site; all: at all nodes in turn) and page
	// (entries of a listing; 100). namespace also accepts listproportion, statproportion, createproportion,
	// mkdirproportion, renameproportion and removeproportion.
	Properties map[string]string `yaml:"properties" json:"properties,omitempty"`
	// Probes are short jobs of the same workload that run next to it.
	Probes *Probes `yaml:"probes" json:"probes,omitempty"`
}

// Probes are short jobs, one after another, during the measurement. Each job is a new client on the client's node that
// connects, runs its operations as fast as it can, and ends. The summary has the figures of each job; the figures of
// the workload exclude them.
type Probes struct {
	// Operations is the number of operations of each job.
	Operations int64 `yaml:"operations" json:"operations" jsonschema:"default=100,minimum=1"`
	// Every is the time from the start of one job to the start of the next. The next job starts at once if a job takes
	// longer.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"default=5s"`
	// Threads is the number of threads of each job.
	Threads int `yaml:"threads" json:"threads" jsonschema:"default=1,minimum=1"`
}

// Shorthand lets "workload: a" stand for "workload: {name: a}".
func (Workload) Shorthand() string { return "name" }

// Alternatives excludes name and file from each other.
func (Workload) Alternatives() [][]string { return [][]string{{"name", "file"}} }

// Endless is a stop.operations that no trial reaches: the trial runs until it is interrupted.
const Endless = 1 << 50

// Stop limits a trial's measurement. Without operations and time, the operationcount and maxexecutiontime of the
// workload's file apply; without those, time is 30s.
type Stop struct {
	// Operations ends the measurement after this number of operations.
	Operations int64 `yaml:"operations" json:"operations,omitempty" jsonschema:"minimum=1"`
	// Time ends the measurement after this duration.
	Time unit.Duration `yaml:"time" json:"time,omitempty"`
	// Confidence ends the measurement when the half-width of the 95 % confidence interval of the goodput is below this
	// share of its mean (batch means; see fidelity.md).
	Confidence unit.Fraction `yaml:"confidence" json:"confidence,omitempty"`
	// MinTime is the shortest measurement that confidence may end.
	MinTime unit.Duration `yaml:"min_time" json:"min_time" jsonschema:"default=5s"`
	// AfterEvents ends the measurement this long after the last event ended.
	AfterEvents *unit.Duration `yaml:"after_events" json:"after_events,omitempty"`
}

// Fidelity sets the limits beyond which a trial is suspect (see fidelity.md).
type Fidelity struct {
	// RTTError limits |measured - set| of the median round trip of any link.
	RTTError unit.Duration `yaml:"rtt_error" json:"rtt_error" jsonschema:"default=0.5ms"`
	// BandwidthError limits the relative error of the bandwidth of any link.
	BandwidthError unit.Fraction `yaml:"bandwidth_error" json:"bandwidth_error" jsonschema:"default=5%"`
	// EmulatorLate limits the lateness with which the emulator delivers packets, 99th percentile.
	EmulatorLate unit.Duration `yaml:"emulator_late" json:"emulator_late" jsonschema:"default=1ms"`
	// ClientLate limits the lateness with which the driver sends operations, 99th percentile.
	ClientLate unit.Duration `yaml:"client_late" json:"client_late" jsonschema:"default=5ms"`
	// EventLate limits the lateness with which events begin, 99th percentile.
	EventLate unit.Duration `yaml:"event_late" json:"event_late" jsonschema:"default=20ms"`
	// ClientCPU limits the utilisation of the driver's CPU quota.
	ClientCPU unit.Fraction `yaml:"client_cpu" json:"client_cpu" jsonschema:"default=90%"`
	// HostCPU limits the mean CPU utilisation of the machine.
	HostCPU unit.Fraction `yaml:"host_cpu" json:"host_cpu" jsonschema:"default=95%"`
	// Steal limits the share of CPU time that the hypervisor gives to other guests.
	Steal unit.Fraction `yaml:"steal" json:"steal" jsonschema:"default=5%"`
	// Others limits the mean share of the machine's cores that programs outside the run use.
	Others unit.Fraction `yaml:"others" json:"others" jsonschema:"default=10%"`
	// Moved limits the relative change of response times and goodput if the stretches with CPU time stolen from the
	// driver are excluded.
	Moved unit.Fraction `yaml:"moved" json:"moved" jsonschema:"default=5%"`
}

// Drift changes the links while a trial measures, by exactly one of steps, trace and mobility. Time counts from the
// start of the measurement. Setup and warm-up use the links as at 0s. A link that loses every packet at 0s does so only
// from the start of the measurement.
type Drift struct {
	// Name labels the drift in results. A matrix of several needs names that differ.
	Name string `yaml:"name" json:"name,omitempty" jsonschema:"example=ship"`
	// Steps change all links at once, or some of them.
	Steps []Step `yaml:"steps" json:"steps,omitempty"`
	// Trace replays a CSV file (relative to this file); each row changes one direction of a link. The columns are time,
	// from, to (nodes or sites; empty for all) and any of latency (one way), bandwidth and loss. An empty cell leaves
	// the value unchanged. A column named time_s or latency_ms has cells without units. A trace whose rows are all
	// after the end of the trial is refused, and so are Unix time stamps. Notes report rows that a trial does not
	// reach.
	Trace string `yaml:"trace" json:"trace,omitempty" jsonschema:"example=trace.csv"`
	// Mobility moves sites; latency and bandwidth follow from their distance.
	Mobility *topology.Mobility `yaml:"mobility" json:"mobility,omitempty"`
	// Every is the interval between updates of the links.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"default=100ms"`
}

// Alternatives allows one kind of drift.
func (Drift) Alternatives() [][]string { return [][]string{{"steps", "trace", "mobility"}} }

// Step is one change of links.
type Step struct {
	// At is the time since the start of the measurement.
	At unit.Duration `yaml:"at" json:"at" jsonschema:"required"`
	// Scale replaces the experiment's scale from this step on.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"minimum=0,maximum=1000"`
	// Links change single links; the scale does not apply to them. A name selects one of a pair's links ("A~B#1" if the
	// topology does not name it); without a name, all links of the pair change.
	Links []topology.LinkSpec `yaml:"links" json:"links,omitempty"`
}

// Recovery sets how recovery from an event is measured (see recovery.md).
type Recovery struct {
	// Baseline is the length of the period before an event that serves as reference.
	Baseline unit.Duration `yaml:"baseline" json:"baseline" jsonschema:"default=60s"`
	// Goodput is the share of the baseline's goodput that a second must reach.
	Goodput unit.Fraction `yaml:"goodput" json:"goodput" jsonschema:"default=90%"`
	// P99 is the maximum p99 of a second, as a multiple of the baseline's p99.
	P99 float64 `yaml:"p99" json:"p99" jsonschema:"default=2,minimum=1"`
	// Hold is the time for which seconds must meet these limits to count as recovered.
	Hold unit.Duration `yaml:"hold" json:"hold" jsonschema:"default=10s"`
	// SLA is the p99 above which a second violates the service level. The default is p99 times the baseline's p99.
	SLA unit.Duration `yaml:"sla" json:"sla,omitempty"`
}

// Audit reads every acknowledged write back (see audit.md).
type Audit struct {
	// Enabled turns the audit on.
	Enabled bool `yaml:"enabled" json:"enabled"`
	// HistoryKeys is the number of records whose operations are recorded and checked for linearizability; 0 means none.
	HistoryKeys int `yaml:"history_keys" json:"history_keys" jsonschema:"default=8,minimum=0,maximum=1000"`
	// Settle is the time that stale copies have to catch up before they count.
	Settle unit.Duration `yaml:"settle" json:"settle" jsonschema:"default=10s"`
}

// Shorthand lets "audit: true" stand for "audit: {enabled: true}".
func (Audit) Shorthand() string { return "enabled" }
