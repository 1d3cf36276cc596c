package choose

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/database/redis"
	"skerry/internal/record"
)

// made is a database that is never started: its trials are made up.
type made struct {
	*redis.Redis
	name string
}

func (m made) Name() string                      { return m.name }
func (m made) Check(int, database.Options) error { return nil }
func (m made) Find(string) (database.Installation, error) {
	return database.Installation{Database: m.name, Version: "1"}, nil
}

// registry has three databases: slow keeps everything, fast loses writes by design and by trial,
// middle is in between and loses some when a site is lost.
func registry() []database.About {
	about := func(name string, choices ...database.Choice) database.About {
		return database.About{Name: name, New: func() database.Database { return made{redis.New(), name} }, Choices: func(database.Place) []database.Choice { return choices }}
	}
	return []database.About{
		about("slow", database.Choice{Name: "safe", Reads: database.ReadsLinearizable, GivesUp: "speed"}),
		about("middle", database.Choice{Name: "safe", Reads: database.ReadsLinearizable, GivesUp: "some"}, database.Choice{Name: "near", GivesUp: "freshness"}),
		about("fast", database.Choice{Name: "loose", Reads: database.ReadsLinearizable, Loses: "the last ones", GivesUp: "safety"}),
	}
}

const needsText = `cloud: {sites: [a, b, c], defaults: {rtt: 10ms}}
client: a
load: {workload: b, target: 50, records: 100}
must:
  - p99 < 400ms
  - lost_writes == 0
  - events.site_lost.unresponsive < 5s
  - read: linearizable
bad_days: [site_lost: b, link_cut: any]
prefer: [p99, cost.memory]
budget: 30m
`

// measure makes trials up: their p99 by database, and what is lost where a site is.
func measure(t *testing.T, count *int) Measure {
	return func(_ context.Context, source record.File, out string) (string, error) {
		*count++
		base := filepath.Base(source.Path)
		p99 := map[string]float64{"slow": 300e3, "midd": 100e3, "fast": 10e3}[base[:4]]
		trial := record.Trial{ID: 1, Repetition: 1, State: record.TrialOK, DurationS: 10, SetupS: 5, Goodput: 50, Outcomes: record.Outcomes{OK: 500},
			Operations: map[string]record.OperationSummary{"READ": {Count: 500, Response: record.Latency{P99: p99 * (1 + 0.01*float64(*count%3)), Max: p99}}},
			Verdict:    record.Verdict{State: record.Valid}}
		if strings.Contains(source.Text, "events:") {
			trial.Audit = &record.Audit{}
			trial.Events = []record.Happening{{Name: "site_lost", Kind: "link_down", Recovery: record.Recovery{BaselineOps: 50, UnresponsiveS: 1}}}
			if strings.HasPrefix(base, "middle") && strings.Contains(base, "site-lost") {
				trial.Audit.Lost = 3
			}
		}
		w, err := record.Create(out, record.Run{Name: "made", File: source, Plan: []record.Planned{{ID: 1, Cell: 1, Repetition: 1, Task: 1}}})
		if err != nil {
			return "", err
		}
		tw, err := w.OpenTrial(1)
		if err != nil {
			return "", err
		}
		return w.Dir(), errors.Join(tw.Finish(trial), w.Finish(), w.Close())
	}
}

func plan(t *testing.T, dir, text string) *Contest {
	t.Helper()
	path := filepath.Join(t.TempDir(), "needs.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Plan(n, dir, registry())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The faster database loses writes on a bad day, one is left out by its design, and the answer
// names the one that does what is needed.
func TestAnswer(t *testing.T) {
	count := 0
	c := plan(t, t.TempDir(), needsText)
	if err := c.Run(t.Context(), measure(t, &count), func(string) {}); err != nil {
		t.Fatal(err)
	}
	a := c.Answer()
	if !strings.HasPrefix(a.Sentence, "slow, safe: p99 30") || !strings.Contains(a.Sentence, "2 bad days") {
		t.Errorf("the sentence is %q", a.Sentence)
	}
	if v := a.Candidates[1]; v.Label != "middle, safe" || v.Out != "failed" || !strings.Contains(v.Why, "lost_writes") || !strings.Contains(v.Why, "site_lost") {
		t.Errorf("the second: %+v", v)
	}
	if len(a.Changes) != 1 || !strings.Contains(a.Changes[0], "middle") {
		t.Errorf("what would change it: %q", a.Changes)
	}
	left := map[string]string{}
	for _, l := range a.Left {
		left[l.Who] = l.Why
	}
	if !strings.Contains(left["fast, loose"], "the last ones") || !strings.Contains(left["middle, near"], "linearizable") {
		t.Errorf("left out: %v", left)
	}
	for _, n := range a.Candidates[0].Needs {
		if n.State != Met || n.N == 0 {
			t.Errorf("%+v", n)
		}
	}
}

// A contest that was cut off goes on with what is there, other needs are answered from it, and
// trials under another load are not taken for these.
func TestWhatWasMeasuredIsNotMeasuredAgain(t *testing.T) {
	dir, all := t.TempDir(), 0
	whole := plan(t, t.TempDir(), needsText)
	if err := whole.Run(t.Context(), measure(t, &all), func(string) {}); err != nil {
		t.Fatal(err)
	}
	count, stop := 0, errors.New("cut off")
	by := measure(t, &count)
	cut := func(ctx context.Context, f record.File, out string) (string, error) {
		if count == 3 {
			return "", stop
		}
		return by(ctx, f, out)
	}
	if err := plan(t, dir, needsText).Run(t.Context(), cut, func(string) {}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	c := plan(t, dir, needsText)
	if err := c.Run(t.Context(), by, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if count != all {
		t.Errorf("%d trials were measured, want %d as in one go", count, all)
	}
	for text, more := range map[string]bool{
		strings.Replace(needsText, "p99 < 400ms", "p99 < 350ms", 1): false,
		strings.Replace(needsText, "target: 50", "target: 60", 1):   true,
	} {
		before := count
		if err := plan(t, dir, text).Run(t.Context(), by, func(string) {}); err != nil {
			t.Fatal(err)
		}
		if (count > before) != more {
			t.Errorf("%d new trials, want some: %v", count-before, more)
		}
	}
	replayed := plan(t, dir, needsText)
	if err := replayed.Replay(); err != nil {
		t.Fatal(err)
	}
	if was, is := c.Answer().Sentence, replayed.Answer().Sentence; was != is {
		t.Errorf("replayed: %q, was %q", is, was)
	}
}

func TestNoneMeetsTheNeeds(t *testing.T) {
	count := 0
	c := plan(t, t.TempDir(), strings.Replace(needsText, "p99 < 400ms", "p99 < 50ms", 1))
	if err := c.Run(t.Context(), measure(t, &count), func(string) {}); err != nil {
		t.Fatal(err)
	}
	if a := c.Answer(); !strings.HasPrefix(a.Sentence, "None meets all needs. The nearest is ") {
		t.Errorf("the sentence is %q", a.Sentence)
	}
}

func TestMistakesInNeeds(t *testing.T) {
	for change, want := range map[string]string{
		"prefer: [p99, cost.memory]|prefer: [p98]": "prefer[0]",
		"events.site_lost|events.site_gone":        "no bad day has an event",
		"link_cut: any|site_lost: b":               "is bad_days[0], too",
		"budget: 30m|budget: 30m\nbudgets: 1m":     "budgets",
		"link_cut: any|{}":                         "nothing says what happens",
		"p99 < 400ms|p99 below 400ms":              "must[0]",
		"lost_writes == 0|read: {}":                "must[1]",
		"target: 50|target: 1000000000":            "connections cannot send",
	} {
		old, with, _ := strings.Cut(change, "|")
		path := filepath.Join(t.TempDir(), "needs.yaml")
		text := strings.Replace(needsText, old, with, 1)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var ps strict.Problems
		if _, err := Read(path); !errors.As(err, &ps) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", with, err, want)
		}
	}
}

func TestWhatCannotBeAnswered(t *testing.T) {
	for change, want := range map[string]string{
		"budget: 30m|budget: 20s":                     "and the budget is 20s",
		"prefer: [p99, cost.memory]|consider: [fast]": "no candidate is left",
		"prefer: [p99, cost.memory]|consider: [slov]": `did you mean "slow"`,
		"site_lost: b|site_lost: d":                   "d",
		"client: a|client: z":                         "z",
	} {
		old, with, _ := strings.Cut(change, "|")
		path := filepath.Join(t.TempDir(), "needs.yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(needsText, old, with, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		n, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Plan(n, t.TempDir(), registry()); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", with, err, want)
		}
	}
}
