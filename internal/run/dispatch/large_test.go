package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/progress"
	"skerry/internal/record"
	"skerry/internal/run/runner"
)

// large is a plan of thousands of trials in a hundred cells.
func large(t testing.TB, thousands int) Config {
	t.Helper()
	return config(t, fmt.Sprintf("repetitions=%d", 10*thousands), "matrix={scale: [0.1, 0.2], workload.threads: ["+numbers(50)+"]}")
}

func numbers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i+1))
	}
	return strings.Join(all, ", ")
}

// A plan larger than the engine's limit is submitted in arrays of that limit.
func TestLargePlansRespectLimits(t *testing.T) {
	c := newCluster(t, -1)
	cfg := large(t, 6)
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Progress = progress.New(said(func(line string) {
		if strings.Contains(line, "6000 waiting") {
			cancel()
		}
	}), func() int { return 0 })
	dir, err := Run(ctx, cfg)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	jobs, err := c.jobs()
	if err != nil {
		t.Fatal(err)
	}
	tasks := 0
	for _, j := range jobs {
		tasks += len(j.Lines)
		if len(j.Lines) > 1000 {
			t.Errorf("an array of %d tasks, but the index limit is 1001", len(j.Lines))
		}
	}
	if tasks != 5000 {
		t.Errorf("submitted %d tasks, want half of the engine's limit of 10000 jobs", tasks)
	}
	if s, err := ReadState(dir); err != nil || len(s.Open) != len(jobs) {
		t.Errorf("%d submissions are recorded, want %d (%v)", len(s.Open), len(jobs), err)
	}
}

// followedFor is long enough for the slowest case to poll the engine several times.
const followedFor = time.Minute

// BenchmarkLargePlan plans 100,000 trials, submits as many as the simulated cluster accepts, and follows the run for one
// minute in which ten results arrive per second, after a number of existing results. Each result has the size of a result of
// eight datacentres. Run it with -benchtime 1x. It reports:
//
//	made-s       time from the experiment file to run.json with the complete plan
//	submitted-s  time until the first arrays are submitted
//	taken-in-s   CPU time of one step that collects all existing results and writes summary.json
//	%core        CPU utilisation of this process and its child processes during the following minute, 100 = one core
//	asked        number of polls of the engine during that minute
func BenchmarkLargePlan(b *testing.B) {
	for _, there := range []int{0, 10_000, 50_000} {
		b.Run(fmt.Sprintf("%d-there", there), func(b *testing.B) {
			for b.Loop() {
				followLarge(b, there)
			}
		})
	}
}

func followLarge(b *testing.B, there int) {
	newCluster(b, -1)
	begun := time.Now()
	cfg := large(b, 100)
	cfg.pace = nil // the default pace
	s, err := newDispatcher(cfg)
	if err == nil {
		s.limits, err = s.executor.Check(b.Context())
	}
	if err == nil {
		s.remote, err = runner.CreateRemote(cfg.Config)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(begun).Seconds(), "made-s")
	begun = time.Now()
	if err := errors.Join(s.prepare(), s.step(b.Context())); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(begun).Seconds(), "submitted-s")

	results := filepath.Join(s.dir, "trials")
	ready := filepath.Join(s.dir, "ready")
	coming := int(10 * followedFor.Seconds())
	for id := 1; id <= there+coming; id++ {
		if id <= there {
			leaveResult(b, results, id)
		} else {
			leaveResult(b, ready, id)
		}
	}
	used := processorTime()
	if err := s.step(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric((processorTime() - used).Seconds(), "taken-in-s")

	ctx, cancel := context.WithTimeout(b.Context(), followedFor)
	defer cancel()
	landed := make(chan error, 1)
	go func() {
		var err error
		for id := there + 1; err == nil && ctx.Err() == nil; id++ {
			err = os.Rename(filepath.Join(ready, strconv.Itoa(id)), filepath.Join(results, strconv.Itoa(id)))
			if id%10 == 0 {
				time.Sleep(time.Second) // ten results per second
			}
		}
		landed <- err
	}()
	asked, took, last := 0, 0.0, time.Now()
	s.pace = newPace()
	s.pace.used = func() time.Duration { // before and after each step
		if asked++; asked%2 == 1 {
			took, last = (processorTime() - used).Seconds(), time.Now() // complete steps, each with the wait after it
		}
		return processorTime()
	}
	begun, used = time.Now(), processorTime()
	err = s.runQueue(ctx)
	b.ReportMetric(float64(asked/2), "asked")
	b.ReportMetric(100*took/last.Sub(begun).Seconds(), "%core")
	if err := errors.Join(err, <-landed, s.executor.Close(), s.writer.Close()); err != nil {
		b.Fatal(err)
	}
}

// leaveResult writes the result of a trial to a folder.
func leaveResult(b *testing.B, dir string, id int) {
	t := record.Trial{
		ID: id, State: record.TrialOK, Goodput: float64(id), Verdict: record.Verdict{State: record.Valid},
		DurationS: 12, SetupS: 2, WarmupS: 2,
	}
	for i := range 36 { // of eight datacentres and a client
		t.Fidelity.Links = append(t.Fidelity.Links, record.LinkFidelity{
			ID: fmt.Sprintf("Datacentre%d~Datacentre%d", i/8, i%8), From: fmt.Sprintf("Datacentre%d", i/8), To: fmt.Sprintf("Datacentre%d", i%8),
			SetRTTMS: 123.456, Answered: true, RTTMS: 123.478, RTTP99MS: 123.599, RTTErrorMS: 0.022,
		})
	}
	text, err := json.Marshal(t)
	dir = filepath.Join(dir, strconv.Itoa(id))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "trial.json"), text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}
