package engines

import (
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/testkit"
)

// tenTimes are the settings of the quickstart's grid for engines' figures: a rate that leaves room for three trials on two
// processors. The serial run is made with the same ones, by hand: docs/engines.md tells how.
const tenTimes = "quickstart.yaml --fast --set repetitions=10 --set workload.target=100 --set retries=0 "

// gridOn has an engine measure the quickstart's grid ten times, and compares that with a serial run of it.
func (r *room) gridOn(flags string) {
	serial, err := record.Open(testkit.Asked(r.t, "SKERRY_GRID", "the directory of a serial run of the quickstart's grid; docs/engines.md tells how it is made; minutes"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.must(exec.Command("cp", "../../experiments/quickstart.yaml", r.share))
	if _, err := r.skerry("run " + tenTimes + flags); err != nil {
		r.t.Fatal(err)
	}
	on := r.complete("runs/latest", 40)
	got, err := record.Open(r.path("runs/latest"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("trials by machine: %v; in all %s, one after another %s", on,
		got.Run.Finished.Sub(got.Run.Started).Round(time.Second), serial.Run.Finished.Sub(serial.Run.Started).Round(time.Second))
	within, figures := 0, 0
	for cell := 1; cell <= 4; cell++ {
		for name, figure := range map[string]func(record.Trial) float64{
			"goodput in ops/s":      func(t record.Trial) float64 { return t.Goodput },
			"median of reads in ms": func(t record.Trial) float64 { return t.Operations["READ"].Latency().P50 / 1000 },
			"p95 of reads in ms":    func(t record.Trial) float64 { return t.Operations["READ"].Latency().P95 / 1000 },
		} {
			a, b := estimate(serial, cell, figure), estimate(got, cell, figure)
			figures++
			if math.Abs(a.Mean-b.Mean) <= a.HalfWidth {
				within++
			}
			r.t.Logf("cell %d, %s: serial %.3f ± %.3f, engine %.3f ± %.3f", cell, name, a.Mean, a.HalfWidth, b.Mean, b.HalfWidth)
		}
	}
	r.t.Logf("%d of %d means are within the serial run's intervals", within, figures)
	s, e := gaps(serial), gaps(got)
	r.t.Logf("from the end of a trial to the beginning of the machine's next one: serial %.2f s, engine %.2f s (medians; engine %.2f to %.2f, n=%d)",
		s[len(s)/2], e[len(e)/2], e[0], e[len(e)-1], len(e))
}

func estimate(d *record.Dir, cell int, figure func(record.Trial) float64) stats.Estimate {
	var values []float64
	for _, p := range d.Run.Plan {
		for _, t := range d.Summary.Trials {
			if t.ID == p.ID && p.Cell == cell {
				values = append(values, figure(t))
			}
		}
	}
	return stats.Of(values)
}

// gaps are the times between trials of one machine, in seconds, sorted.
func gaps(d *record.Dir) (all []float64) {
	trials := slices.Clone(d.Summary.Trials)
	slices.SortFunc(trials, func(a, b record.Trial) int { return a.Started.Compare(b.Started) })
	ended := map[string]time.Time{}
	for _, t := range trials {
		if was, is := ended[t.Machine.Name]; is {
			all = append(all, t.Started.Sub(was).Seconds())
		}
		ended[t.Machine.Name] = t.Started.Add(time.Duration((t.SetupS + t.WarmupS + t.DurationS) * float64(time.Second)))
	}
	slices.Sort(all)
	return all
}

func TestSlurmGrid(t *testing.T) {
	testkit.Asked(t, "SKERRY_GRID", "the directory of a serial run of the quickstart's grid; docs/engines.md tells how it is made; minutes")
	newSlurm(t).gridOn("--on slurm:lab")
}

func TestKubernetesGrid(t *testing.T) {
	testkit.Asked(t, "SKERRY_GRID", "the directory of a serial run of the quickstart's grid; docs/engines.md tells how it is made; minutes")
	newKubernetes(t).gridOn(onKubernetes)
}
