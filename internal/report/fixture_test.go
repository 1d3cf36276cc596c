package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
	"skerry/internal/topology"
)

// fixture describes a generated run. The seed determines everything in it.
type fixture struct {
	databases   []string
	workloads   []string
	scales      []float64
	repetitions int
	seconds     int // duration of each trial
	suspect     int // ID of the suspect trial, 0 for none
	failed      int
	only        int // number of finished trials; 0 for all
	hostile     string
	change      func(*record.Trial) // applied to each measured trial, if not nil
}

var azure = []string{"Melbourne", "Sydney", "Canberra", "Pune", "Singapore", "Seoul", "Dubai", "Virginia"}

// azureRTT is Table III's lower triangle, ms.
var azureRTT = [][]float64{{}, {189}, {181, 142}, {223, 81, 64}, {195, 35, 109, 49}, {207, 172, 156, 93, 153},
	{208, 168, 152, 149, 147, 7}, {219, 165, 148, 109, 142, 12, 14}}

func rtt(a, b int) float64 {
	if a < b {
		a, b = b, a
	}
	return azureRTT[a][b]
}

var fixtureStart = time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC)

// quickstart is the experiment of make demo.
var (
	quickstart = fixture{databases: []string{"redis"}, workloads: []string{"a", "c"}, scales: []float64{0.2, 1}, repetitions: 1, seconds: 12}
	small      = fixture{databases: []string{"redis"}, workloads: []string{"a", "c"}, scales: []float64{0.2, 0.6, 1}, repetitions: 3,
		seconds: 24, suspect: 5, failed: 12}
)

func (f fixture) plan() (plan []record.Planned) {
	for rep := range f.repetitions {
		cell := 0
		for _, db := range f.databases {
			for _, w := range f.workloads {
				for _, s := range f.scales {
					cell++
					p := record.Planned{ID: len(plan) + 1, Cell: cell, Repetition: rep + 1, Seed: uint64(len(plan)) * 977,
						Parameters: map[string]any{"database": db, "workload": w, "scale": s}}
					if f.hostile != "" {
						p.Parameters["workload"] = f.hostile + w
						p.Parameters[f.hostile] = f.hostile
					}
					plan = append(plan, p)
				}
			}
		}
	}
	return plan
}

// shared is the run of the fixture small, which most tests only read.
var shared struct {
	once sync.Once
	dir  string
}

func smallRun(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() { shared.dir = small.makeIn(t, filepath.Join(scratch, "small")) })
	return shared.dir
}

// scratch outlives single tests.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "skerry-report-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// make writes the run with record's writer and returns its directory.
func (f fixture) make(t testing.TB) string {
	t.Helper()
	return f.makeIn(t, t.TempDir())
}

func (f fixture) makeIn(t testing.TB, parent string) string {
	t.Helper()
	run := record.Run{
		Name: "quickstart", Description: "Eight datacentres that drift apart, Redis Cluster, YCSB.",
		Command: []string{"skerry", "run", "experiments/quickstart.yaml"}, Started: fixtureStart, Seed: 7,
		Versions: record.Versions{Skerry: "v0.2.0", Go: "go1.26.0", Databases: map[string]string{"redis": "7.0.15"}},
		Host: record.Machine{Name: "bench", OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0-28-amd64",
			CPU: "AMD EPYC 7B13", Cores: 2, MemoryBytes: 16 << 30},
		Engine:   record.Engine{Name: "userspace", Why: "the kernel has no netem (CONFIG_NET_SCH_NETEM)"},
		Warnings: []string{"real-time priority is not to be had: RLIMIT_RTPRIO is 0"},
		File: record.File{Path: "experiments/quickstart.yaml", Text: "name: quickstart\ntopology: azure8\nclient: Singapore\n" +
			"database: redis\nworkload: {records: 10000, threads: 32}\nmatrix:\n  workload: [a, c]\n  scale: [0.2, 1.0]\nseed: 7\n"},
		Experiment: []byte(`{"name":"quickstart"}`), Plan: f.plan(),
	}
	if f.hostile != "" {
		run.Name, run.Description, run.Host.CPU, run.Engine.Why = f.hostile, f.hostile, f.hostile, f.hostile
		run.Command, run.File.Text, run.Warnings = []string{f.hostile}, f.hostile, []string{f.hostile}
		run.Versions.Databases = map[string]string{f.hostile: f.hostile}
	}
	w, err := record.Create(parent, run)
	must(t, err)
	defer w.Close()
	for i, p := range run.Plan {
		if f.only > 0 && i == f.only {
			tw, err := w.OpenTrial(p.ID)
			must(t, err)
			must(t, tw.Second(record.Second{T: 0, OK: 1}))
			return w.Dir() // unfinished, as after a kill
		}
		f.trial(t, w, p)
	}
	must(t, w.Update(func(r *record.Run) {
		r.Finished = fixtureStart.Add(time.Duration(len(run.Plan)*(f.seconds+9)) * time.Second)
	}))
	return w.Dir()
}

// mixes are the operations of YCSB's workloads with their shares.
var mixes = map[string]map[string]float64{
	"a": {"READ": 0.5, "UPDATE": 0.5}, "b": {"READ": 0.95, "UPDATE": 0.05}, "c": {"READ": 1},
	"d": {"READ": 0.95, "INSERT": 0.05}, "e": {"SCAN": 0.95, "INSERT": 0.05},
	"f": {"READ": 1, "UPDATE": 0.5, "READ-MODIFY-WRITE": 0.5},
}

func (f fixture) trial(t testing.TB, w *record.Writer, p record.Planned) {
	t.Helper()
	tw, err := w.OpenTrial(p.ID)
	must(t, err)
	r := rand.New(rand.NewPCG(7, uint64(p.ID)))
	trial := record.Trial{State: record.TrialOK, Started: fixtureStart.Add(time.Duration(p.ID) * time.Minute)}
	if p.ID == f.failed {
		trial.State, trial.Error = record.TrialFailed, "starting redis: node Pune: the process ended with exit status 1\nlast lines "+
			"of its log:\n  Could not create server TCP listening socket *:6379: bind: Address already in use"
		must(t, tw.Finish(trial))
		return
	}
	g := generator{fixture: f, r: r, tw: tw, t: t, scale: p.Parameters["scale"].(float64),
		workload: p.Parameters["workload"].(string)[len(f.hostile):]}
	g.nodes()
	g.drive(&trial)
	g.traffic(&trial)
	g.fidelity(&trial, p.ID == f.suspect)
	if f.change != nil {
		f.change(&trial)
	}
	must(t, tw.Finish(trial))
}

// generator generates one trial.
type generator struct {
	fixture
	r        *rand.Rand
	tw       *record.TrialWriter
	t        testing.TB
	scale    float64
	workload string
	names    []string
}

func (g *generator) nodes() {
	topo := topology.Topology{Name: "azure8"}
	for i, s := range azure {
		s += g.hostile
		topo.Sites = append(topo.Sites, topology.Site{Name: s, Located: true, Lat: float64(i), Lon: float64(i * 20)})
		topo.Nodes = append(topo.Nodes, topology.Node{Name: s, Site: s, Role: topology.Data})
		g.names = append(g.names, s)
	}
	topo.Nodes = append(topo.Nodes, topology.Node{Name: "client", Site: topo.Sites[4].Name, Role: topology.Client})
	g.names = append(g.names, "client")
	must(g.t, g.tw.Topology(topo))
	must(g.t, g.tw.Event(record.Event{T: 0, Kind: "scale", Message: fmt.Sprintf("links at %g of their latency%s", g.scale, g.hostile)}))
}

// drive writes seconds and histograms of a closed loop of 32 threads.
func (g *generator) drive(trial *record.Trial) {
	factor := map[string]float64{"e": 6.5, "f": 1.5}[g.workload]
	if factor == 0 {
		factor = 1
	}
	meanRTT := 88 * g.scale * factor // ms
	rate := 32 / (meanRTT + 1.5) * 1000
	hists := map[string]*hdrhistogram.Histogram{}
	for _, op := range slices.Sorted(maps.Keys(mixes[g.workload])) {
		share := mixes[g.workload][op]
		h := hdrhistogram.New(1, 3_600_000_000, 3)
		for range int(share * 4000) {
			us := 1e3 * (0.4 + rtt(4, pick(g.r))*g.scale*factor) * (1 + 0.02*g.r.ExpFloat64())
			if g.r.Float64() < 0.004 {
				us *= 1.5 + 2*g.r.Float64()
			}
			must(g.t, h.RecordValues(int64(us), 1+int64(rate*float64(g.seconds)/4000)))
		}
		hists[op] = h
		must(g.t, g.tw.Histogram(op+".response", func(w io.Writer) error {
			return hdrhistogram.NewHistogramLogWriter(w).OutputIntervalHistogram(h)
		}))
	}
	trial.Operations = map[string]record.OperationSummary{}
	for op, h := range hists {
		l := summarizeHistogram(h)
		trial.Operations[op] = record.OperationSummary{Count: h.TotalCount(), Service: l, Response: l}
	}
	g.timeline(trial, rate, summarizeHistogram(hists[slices.Sorted(maps.Keys(hists))[0]]))
}

func (g *generator) timeline(trial *record.Trial, rate float64, l record.Latency) {
	rate *= 1 + 0.02*g.r.NormFloat64()
	drift := 0.0
	for s := -2; s < g.seconds; s++ {
		drift = 0.5*drift + 0.02*g.r.NormFloat64()
		ok := int64(rate * (1 + drift))
		if s < 0 {
			ok /= 2
		}
		sec := record.Second{T: int64(s), OK: ok, ServiceP50: l.P50, ServiceP99: l.P99 * (1 + 0.1*math.Abs(g.r.NormFloat64())),
			ClientCPU: 0.2, InFlight: 32}
		if s == g.seconds/2 && g.scale == 1 {
			sec.Failed, sec.Unknown, sec.OK = ok/10, ok/20, ok*17/20
		}
		sec.ResponseP50, sec.ResponseP99 = sec.ServiceP50, sec.ServiceP99
		must(g.t, g.tw.Second(sec))
		for i, n := range append(g.names, "@emulator", "@host") {
			cpu := 0.03 + 0.02*g.r.Float64() + 0.01*float64(i%4)
			if n == "@host" {
				cpu = 0.9 + 0.2*g.r.Float64()
			}
			must(g.t, g.tw.NodeSeconds(record.NodeSecond{T: int64(s), Node: n, CPU: cpu, Memory: 9 << 20}))
		}
		if s >= 0 {
			trial.Outcomes.OK += sec.OK
			trial.Outcomes.Failed += sec.Failed
			trial.Outcomes.Unknown += sec.Unknown
		}
	}
	if n := trial.Outcomes.Failed; n > 0 {
		trial.Errors = append(trial.Errors, record.ErrorCount{Operation: "READ", Class: "timeout", Node: g.names[3], Count: n,
			Example: "i/o timeout" + g.hostile})
	}
	trial.DurationS, trial.WarmupS, trial.SetupS = float64(g.seconds), 2, 6.4
	trial.Stopped = "time"
	trial.Goodput = float64(trial.Outcomes.OK) / trial.DurationS
	trial.Throughput = trial.Goodput + float64(trial.Outcomes.Failed+trial.Outcomes.Unknown)/trial.DurationS
	trial.Interval, trial.Batches = trial.Goodput*0.021, 12
}

func (g *generator) traffic(trial *record.Trial) {
	trial.Traffic = new(record.Traffic)
	ops := float64(trial.Outcomes.OK)
	add := func(a, b int, bytes float64) {
		n := int64(bytes * (1 + 0.05*g.r.Float64()))
		trial.Traffic.Pairs = append(trial.Traffic.Pairs, record.PairTraffic{From: g.names[a], To: g.names[b], Bytes: n})
		trial.Traffic.TotalBytes += n
		if a < 8 && b < 8 {
			trial.Traffic.DataBytes += n
		}
	}
	for a := range 8 {
		add(8, a, ops*160/8)
		add(a, 8, ops*1210/8*(1+0.3*float64(a%3)))
		for b := range 8 {
			if a != b {
				add(a, b, trial.DurationS*2100*(1+g.scale)*(1+float64((a+b)%4)/4))
			}
		}
	}
}

func (g *generator) fidelity(trial *record.Trial, suspect bool) {
	f := record.Fidelity{Engine: "userspace", EmulatorLateP99US: 180 + 60*g.r.Float64(), ClientCPU: 0.21, ClientLateP99US: 320,
		HostCPU: 1.02, HostCPUMax: 1.4, HostCores: 2}
	for a := range 8 {
		for b := range a {
			set := rtt(a, b) * g.scale
			l := record.LinkFidelity{ID: g.names[b] + "~" + g.names[a], From: g.names[b], To: g.names[a], SetRTTMS: set, Answered: true,
				RTTErrorMS: 0.08 + 0.1*g.r.Float64(), SetABbps: 190e6, SetBAbps: 190e6}
			if suspect && a == 6 {
				l.RTTErrorMS += 0.9
			}
			l.RTTMS, l.RTTP99MS = set+l.RTTErrorMS, set+l.RTTErrorMS+0.2
			l.ABbps, l.BAbps = int64(190e6*(1-0.001*g.r.Float64())), int64(190e6*(1-0.001*g.r.Float64()))
			f.WorstRTTErrorMS = max(f.WorstRTTErrorMS, l.RTTErrorMS)
			f.Links = append(f.Links, l)
		}
	}
	f.WorstBandwidthError = 0.001
	f.Account = &record.LinkAccount{Directions: 56, Packets: 240_000}
	if suspect {
		f.Account.Broken = []record.LawViolation{{Law: record.LawSlow, Link: f.Links[0].ID, From: f.Links[0].From, To: f.Links[0].To, T: 12,
			Packets: 86, Of: 120, WorstMS: 6900, Beyond: true, Times: 1, Total: 90}}
	}
	trial.Fidelity = f
	trial.Verdict = record.Verdict{State: record.Valid}
	if suspect {
		trial.Verdict = record.Verdict{State: record.Suspect, Reasons: []string{
			fmt.Sprintf("the RTT of 6 of 28 links is off by more than 0.5 ms (worst %.2f ms)", f.WorstRTTErrorMS) + g.hostile}}
	}
}

func pick(r *rand.Rand) int {
	for {
		if n := r.IntN(8); n != 4 {
			return n
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *record.Dir {
	t.Helper()
	d, err := record.Open(dir)
	must(t, err)
	return d
}
