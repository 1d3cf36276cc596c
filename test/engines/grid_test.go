package engines

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/test/testkit"
)

const serialRun = "the directory of a serial run of the quickstart's grid; docs/engines.md tells how it is made; minutes"

// gridOn runs the quickstart's grid on an engine, with the settings of a serial run, and compares both.
func (r *room) gridOn(flags string) {
	serial, err := record.Open(testkit.OptIn(r.t, "SKERRY_GRID", serialRun))
	if err != nil {
		r.t.Fatal(err)
	}
	r.write("quickstart.yaml", serial.Run.File.Text)
	line := "run quickstart.yaml "
	if serial.Run.File.Fast {
		line += "--fast "
	}
	for _, set := range serial.Run.File.Set {
		line += "--set '" + set + "' "
	}
	if _, err := r.skerry(line + flags); err != nil {
		r.t.Fatal(err)
	}
	on := r.complete("runs/latest", len(serial.Run.Plan))
	got, err := record.Open(r.path("runs/latest"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("trials by machine: %v; suspect: serial %d, engine %d; in all %s, one after another %s", on, suspects(serial), suspects(got),
		got.Run.Finished.Sub(got.Run.Started).Round(time.Second), serial.Run.Finished.Sub(serial.Run.Started).Round(time.Second))
	var within, figures [2]int
	for cell := 1; cell <= 4; cell++ {
		for name, figure := range map[string]func(record.Trial) float64{
			"goodput in ops/s":      func(t record.Trial) float64 { return t.Goodput },
			"median of reads in ms": func(t record.Trial) float64 { return t.Operations["READ"].Latency().P50 / 1000 },
			"p95 of reads in ms":    func(t record.Trial) float64 { return t.Operations["READ"].Latency().P95 / 1000 },
		} {
			a := stats.EstimateMean(values(serial, cell, false, figure))
			text := fmt.Sprintf("cell %d, %s: serial %.3f ± %.3f", cell, name, a.Mean, a.HalfWidth)
			for i, valid := range []bool{false, true} { // the report uses valid trials, if any
				v := values(got, cell, valid, figure)
				if len(v) == 0 {
					text += "; no valid trial"
					continue
				}
				b := stats.EstimateMean(v)
				figures[i]++
				if math.Abs(a.Mean-b.Mean) <= a.HalfWidth {
					within[i]++
				}
				text += fmt.Sprintf("; engine %.3f ± %.3f (%d trials)", b.Mean, b.HalfWidth, len(v))
			}
			r.t.Log(text)
		}
	}
	r.t.Logf("within the serial run's intervals: %d of %d means of all trials, %d of %d of valid ones", within[0], figures[0], within[1], figures[1])
	alone, pause := gaps(serial), gaps(got)
	if len(alone) == 0 || len(pause) == 0 {
		r.t.Fatal("no machine has measured two trials")
	}
	r.t.Logf("from the end of a trial to the start of the machine's next trial: serial %s; engine %s: %.2f s more",
		spread(alone), spread(pause), pause[len(pause)/2]-alone[len(alone)/2])
}

// spread describes sorted figures in seconds.
func spread(all []float64) string {
	return fmt.Sprintf("%.2f s (median of %d, %.2f to %.2f, half of them %.2f to %.2f)", all[len(all)/2], len(all), all[0], all[len(all)-1], all[len(all)/4], all[len(all)*3/4])
}

func suspects(d *record.Dir) (n int) {
	for _, t := range d.Summary.Trials {
		if t.Verdict.State == record.Suspect {
			n++
		}
	}
	return n
}

// values returns those of a cell, over all trials or only valid ones.
func values(d *record.Dir, cell int, valid bool, figure func(record.Trial) float64) (all []float64) {
	for _, p := range d.Run.Plan {
		for _, t := range d.Summary.Trials {
			if t.ID == p.ID && p.Cell == cell && (!valid || t.Verdict.State == record.Valid) {
				all = append(all, figure(t))
			}
		}
	}
	return all
}

// gaps returns the sorted times between trials of one machine, in seconds.
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
	testkit.OptIn(t, "SKERRY_GRID", serialRun)
	newSlurm(t).gridOn("--on slurm:lab")
}

func TestKubernetesGrid(t *testing.T) {
	testkit.OptIn(t, "SKERRY_GRID", serialRun)
	newKubernetes(t).gridOn(onKubernetes)
}
