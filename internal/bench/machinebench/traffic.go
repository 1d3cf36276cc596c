package machinebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/evidence/stats"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/inventory"
	"skerry/internal/record"
)

// Traffic is what the controller costs while a trial measures on several machines; medians of rounds.
type Traffic struct {
	Topology string `json:"topology"`
	Database string `json:"database"`
	Machines int    `json:"machines"`
	Rounds   int    `json:"rounds"`
	// Seconds are the shortest measurement's.
	Seconds float64 `json:"seconds"`
	// OPS are the operations a second that clients did meanwhile.
	OPS float64 `json:"ops_per_second"`
	// Core is the controller's use of processors, in percent of one.
	Core float64 `json:"core_percent"`
	// ToBPS and FromBPS are bytes a second on the carriers of all machines together, to the agents and from them.
	ToBPS   float64 `json:"to_agents_bytes_per_second"`
	FromBPS float64 `json:"from_agents_bytes_per_second"`
	// What is to be stayed below.
	ReachCore float64 `json:"reach_core_percent"`
	ReachBPS  float64 `json:"reach_bytes_per_second"`
}

// trafficTrial is the quickstart's, on the distances as they are.
const trafficTrial = `name: traffic
topology: azure8
client: Singapore
database: redis
workload: {name: a, records: 1000, threads: 32}
warmup: 2s
stop: {time: %ds}
retries: 0
`

const (
	trafficMachines = 8
	sampling        = 200 * time.Millisecond
)

// moment is what the controller has used, and its carriers have carried, up to a time.
type moment struct {
	at       time.Time
	cpu      time.Duration
	to, from int64 // bytes
}

func (o Options) traffic(ctx context.Context) (x Traffic, err error) {
	x = Traffic{Topology: "azure8", Database: "redis", Machines: trafficMachines, Rounds: o.Rounds, ReachCore: 1, ReachBPS: 100e3}
	r, err := newRoom(o.Exe, trafficMachines)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	var core, to, from, ops []float64
	for i := range o.Rounds {
		o.Progress(fmt.Sprintf("the controller of %s on %d machines, %d of %d", x.Topology, x.Machines, i+1, o.Rounds))
		all, trial, err := o.controlled(ctx, r, filepath.Join(r.dir, fmt.Sprint("round", i)))
		if err != nil {
			return x, err
		}
		began := trial.Started.Add(seconds(trial.SetupS + trial.WarmupS))
		a, b := nearest(all, began), nearest(all, began.Add(seconds(trial.DurationS)))
		took := b.at.Sub(a.at).Seconds()
		if took <= 0 {
			return x, fmt.Errorf("%w: %d samples", errBrief, len(all))
		}
		if x.Seconds == 0 || took < x.Seconds {
			x.Seconds = took
		}
		core = append(core, 100*(b.cpu-a.cpu).Seconds()/took)
		to, from = append(to, float64(b.to-a.to)/took), append(from, float64(b.from-a.from)/took)
		ops = append(ops, trial.Goodput)
	}
	x.Core, x.ToBPS, x.FromBPS, x.OPS = stats.Median(core), stats.Median(to), stats.Median(from), stats.Median(ops)
	return x, nil
}

var (
	errBrief = errors.New("the controller ended before it could be looked at")
	errTrial = errors.New("the trial was not measured")
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// nearest is the moment that is nearest to a time.
func nearest(all []moment, to time.Time) (m moment) {
	for i, x := range all {
		if i == 0 || x.at.Sub(to).Abs() < m.at.Sub(to).Abs() {
			m = x
		}
	}
	return m
}

// controlled has a controller of its own measure a trial on the machines, and looks at it meanwhile. Files are in
// dir.
func (o Options) controlled(ctx context.Context, r *room, dir string) (all []moment, trial record.Trial, err error) {
	list, err := r.counted(dir)
	if err != nil {
		return nil, trial, err
	}
	machines, err := json.Marshal(inventory.File{Machines: list})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "machines.yaml"), machines, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "trial.yaml"), fmt.Appendf(nil, trafficTrial, o.Seconds), 0o600)
	}
	if err != nil {
		return nil, trial, err
	}
	said := tail.New(4096)
	cmd := exec.CommandContext(ctx, o.Exe, "run", "trial.yaml", "--machines", "machines.yaml", "--out", "runs")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	cmd.Env = append(os.Environ(), "SKERRY_STATE="+filepath.Join(dir, "state"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it takes its lab down
	if err := cmd.Start(); err != nil {
		return nil, trial, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	for {
		select {
		case err = <-ended:
			if err != nil {
				return all, trial, fmt.Errorf("%w: %w: %s", errTrial, err, said)
			}
			d, err := record.Open(filepath.Join(dir, "runs", "latest"))
			if err != nil {
				return all, trial, err
			}
			if len(d.Summary.Trials) != 1 || d.Summary.Trials[0].State != record.TrialOK {
				return all, trial, fmt.Errorf("%w: %s", errTrial, said)
			}
			return all, d.Summary.Trials[0], nil
		case <-tick.C:
			if m, err := look(cmd.Process.Pid, dir); err == nil { // else it is ending
				all = append(all, m)
			}
		}
	}
}

// look is what a controller has used up to now.
func look(pid int, dir string) (m moment, err error) {
	s, err := procfs.ReadStat(pid)
	if err != nil {
		return m, err
	}
	m = moment{at: time.Now(), cpu: s.CPU}
	m.to, m.from, err = carried(dir)
	return m, err
}
