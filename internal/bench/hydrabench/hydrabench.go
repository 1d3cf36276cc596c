// Package hydrabench measures Hydra on a lab as its document was measured: two clouds 40 ms
// apart, a witness 20 ms from both, and all of it again at no distance. Everything that is
// compared is measured in one run on the same machine: through Raft, past it (one SQL
// database behind the same interface), and etcd with three members at the same places.
//
//	Run ─► lab ─► for each distance: Hydra, the database alone, etcd
//	                  └─ node aws-3: skerry agent hydra ──► Serve: closed-loop workers
//	                  └─ node third-2: the same, through DNS and load balancer
package hydrabench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/lab"
	"skerry/internal/system/hydra/deploy"
	"skerry/internal/topology"
)

// ErrPart is a part that there is not.
var ErrPart = errors.New("no such part of the benchmark")

// Parts of the benchmark.
const (
	PartHydra    = "hydra"    // reads, writes and mixes through Raft
	PartDirect   = "direct"   // the same past it
	PartEtcd     = "etcd"     // writes
	PartFailover = "failover" // a leader killed, a cloud lost
	PartRebuild  = "rebuild"  // a database from nothing
	PartLog      = "log"      // the log on disk under endless writes
)

var parts = []string{PartHydra, PartDirect, PartEtcd, PartFailover, PartRebuild, PartLog}

// Options of a run.
type Options struct {
	// Workers are how many requests are under way at once, in turn.
	Workers []int
	// Time of each measurement, and how many there are of each that a goal is about.
	Time    time.Duration
	Repeats int
	// Rows of the database that is rebuilt from nothing.
	Rows int
	// MaxLog is the bound of the log whose size is watched, in bytes.
	MaxLog int64
	// Trials of the leader's and the cloud's loss.
	Trials int
	// Only names the parts; all when empty.
	Only []string
	// Scales are factors of the distances.
	Scales []float64
	Engine string
	// Etcd is the database and its installation.
	Etcd             database.Database
	EtcdInstallation database.Installation
	// Exe is the skerry program.
	Exe      string
	Progress func(what string)
}

// Result is what was measured.
type Result struct {
	Schema string   `json:"schema"`
	Cores  int      `json:"cores"`
	Engine string   `json:"engine"`
	Scenes []Scene  `json:"scenes"`
	Table  []Figure `json:"table"`
	Notes  []string `json:"notes,omitempty"`
}

// Scene is one distance between the clouds.
type Scene struct {
	Scale float64 `json:"scale"`
	// RTT between the clouds, and to the nearest majority, as measured, in ms; Fsync is
	// the median time that a small write takes to the disk of the members, in ms.
	RTT      float64 `json:"rtt_ms"`
	Majority float64 `json:"majority_rtt_ms"`
	Fsync    float64 `json:"fsync_ms"`
	// Loads are the measurements.
	Loads []Load `json:"loads,omitempty"`
	// Leader and Cloud are what was seen of their losses, Rebuild and Log of those parts.
	Leader  []Loss   `json:"leader_killed,omitempty"`
	Cloud   []Loss   `json:"cloud_lost,omitempty"`
	Rebuild *Rebuild `json:"rebuild,omitempty"`
	Log     *Log     `json:"log,omitempty"`
}

// Load is one measurement of closed-loop workers.
type Load struct {
	System  string  `json:"system"`       // hydra, direct or etcd
	Op      string  `json:"op"`           // write, read, mix or apply
	At      string  `json:"at,omitempty"` // the member that alone was asked
	Workers int     `json:"workers"`
	Seconds float64 `json:"seconds"`
	OK      int64   `json:"ok"`
	Failed  int64   `json:"failed"` // turned away, broken or in doubt
	Rate    float64 `json:"ops_s"`
	Mean    float64 `json:"mean_ms"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
	Error   string  `json:"error,omitempty"` // one of the failures
	// CPU is what an operation took of the processors, in µs: of the workers' process, and of
	// all others on the lab's nodes. Unlike rates it hardly depends on what else the machine does.
	ClientCPU float64 `json:"client_cpu_us"`
	ServerCPU float64 `json:"server_cpu_us"`
	// Reads and Writes are calls of the system, and Switches those between threads, of the
	// workers' process for an operation: fewer where messages go together.
	Reads    float64 `json:"client_reads"`
	Writes   float64 `json:"client_writes"`
	Switches float64 `json:"client_switches"`
	// Pace is what the same work in memory took of a processor all the while, in µs (the median):
	// it grows where the machine is slower.
	Pace float64 `json:"pace_us"`
}

// Loss is what a loss did to clients that went on writing.
type Loss struct {
	// Seconds from the loss to the end of the first write that began after it.
	Seconds float64 `json:"first_write_s"`
	// Election is the timeout in force, in ms; 0 where it is not known.
	Election float64 `json:"election_timeout_ms,omitempty"`
	Failed   int     `json:"failed"` // writes that the client got no good answer to
}

// Rebuild is a database rebuilt from nothing: by a snapshot, since the other members' logs no
// longer begin at their beginning.
type Rebuild struct {
	Rows     int     `json:"rows"`
	LogFirst uint64  `json:"log_first"` // where the log began when the database was lost
	Seconds  float64 `json:"seconds"`   // from its members' start until it has all
	// Writes to the other cloud meanwhile, and local reads of a client that prefers the
	// cloud whose database is rebuilt.
	Writes Load `json:"writes"`
	Reads  Load `json:"reads"`
}

// Log is the log on disk.
type Log struct {
	Bound   int64   `json:"bound_bytes"`
	Largest int64   `json:"largest_bytes"` // of any member at any time
	Wrote   int64   `json:"wrote_bytes"`   // payload
	Seconds float64 `json:"seconds"`
}

const schema = "skerry/bench-hydra/v1"

// Quick makes a run that touches every part in a few minutes.
func (o *Options) Quick() {
	o.Workers, o.Time, o.Repeats, o.Rows, o.MaxLog, o.Trials = []int{1, 160, 240}, time.Second, 1, 20_000, 8<<20, 1
}

func (o *Options) wanted(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }

// Run measures. The lab is made in a state directory of the run's own.
func Run(ctx context.Context, o Options) (r Result, err error) {
	r = Result{Schema: schema, Cores: runtime.NumCPU()}
	for _, p := range o.Only {
		if !slices.Contains(parts, p) {
			return r, fmt.Errorf("%w: %q (there are %v)", ErrPart, p, parts)
		}
	}
	dir, err := os.MkdirTemp("", "skerry-bench-")
	if err != nil {
		return r, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // databases that refuse root have to get in
		return r, err
	}
	file := filepath.Join(dir, "topology.yaml")
	if err := os.WriteFile(file, []byte(places), 0o644); err != nil {
		return r, err
	}
	cloud, err := topology.Load(file)
	if err != nil {
		return r, err
	}
	for _, scale := range o.Scales {
		if err := o.scene(ctx, dir, cloud, scale, &r); err != nil {
			return r, fmt.Errorf("at %v times the distance: %w", scale, err)
		}
	}
	r.Table = table(r.Scenes)
	return r, nil
}

// scene measures at one distance, on a lab of its own.
func (o Options) scene(ctx context.Context, dir string, cloud topology.Topology, scale float64, r *Result) (err error) {
	l, err := lab.Up(ctx, lab.Config{
		Name: "hydra-bench", Topology: cloud, Scale: scale, Engine: o.Engine, Exe: o.Exe, Ephemeral: true,
		StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	r.Engine, _ = l.Engine()
	layout, err := deploy.OnHosts(l.Hosts())
	if err != nil {
		return err
	}
	w := &world{Options: o, lab: l, layout: layout, scale: scale, scene: Scene{Scale: scale}, notes: &r.Notes}
	defer func() { r.Scenes = append(r.Scenes, w.scene) }()
	if err := w.distances(ctx); err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		measure func(context.Context) error
	}{{PartHydra, w.throughRaft}, {PartDirect, w.pastRaft}, {PartEtcd, w.etcd}, {PartFailover, w.losses}, {PartRebuild, w.rebuild}, {PartLog, w.logSize}} {
		// How long these take is no matter of distance, or their goal is one without any.
		once := part.name == PartLog || part.name == PartRebuild
		if !o.wanted(part.name) || once && scale != 0 && slices.Contains(o.Scales, 0) {
			continue
		}
		w.Progress(fmt.Sprintf("%s at %v ms", part.name, 40*scale))
		if err := part.measure(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			// What was measured before is worth having.
			w.note("%s at %v ms was not measured: %v", part.name, 40*scale, err)
		}
	}
	return nil
}

// places is topologies/two-clouds.yaml, held against it by a test.
const places = `name: hydra
sites:
  - {name: aws, nodes: 3}
  - {name: gcp, nodes: 3}
  - {name: third, nodes: 2}
connect: full
defaults: {rtt: 20ms, site_rtt: 0.2ms}
links: [{between: [aws, gcp], rtt: 40ms}]
`
