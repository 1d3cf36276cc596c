package choose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/database/redis"
	"skerry/internal/evidence/race"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

// made is a database that is never started; its trials are generated.
type made struct {
	*redis.Redis
	name string
}

func (m made) Name() string                      { return m.name }
func (m made) Check(int, database.Options) error { return nil }
func (m made) Find(string, string) (database.Installation, error) {
	return database.Installation{Database: m.name, Version: "1"}, nil
}

// registry has three databases: slow loses nothing, fast loses writes by design and in trials, middle loses some when a
// site is lost.
func registry() []database.About {
	about := func(name string, choices ...database.Choice) database.About {
		return database.About{
			Name: name, New: func() database.Database { return made{redis.New(), name} },
			Choices: func(database.Placement) []database.Choice { return choices },
		}
	}
	return []database.About{
		about("slow", database.Choice{Name: "safe", Reads: database.ReadsLinearizable, GivesUp: "speed"}),
		about(
			"middle", database.Choice{Name: "safe", Reads: database.ReadsLinearizable, GivesUp: "some"},
			database.Choice{Name: "near", GivesUp: "freshness"},
		),
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

// measure generates trials: their p99 by database, and lost writes when a site is lost.
func measure(t *testing.T, count *int) Measure {
	var lock sync.Mutex // heats may run in parallel
	return func(_ context.Context, source record.File, out string, _ Lane) (string, error) {
		lock.Lock()
		defer lock.Unlock()
		*count++
		base := filepath.Base(source.Path)
		p99 := map[string]float64{"slow": 300e3, "midd": 100e3, "fast": 10e3, "auro": 2e3, "ours": 4e3}[base[:4]]
		trial := record.Trial{ID: 1, Repetition: 1, State: record.TrialOK, DurationS: 10, SetupS: 5, Goodput: 50, Outcomes: record.Outcomes{
			OK: 500,
		},
			Operations: map[string]record.OperationSummary{"READ": {
				Count: 500, Response: record.Latency{P99: p99 * (1 + 0.01*float64(*count%3)), Max: p99},
			}},
			Verdict: record.Verdict{State: record.Valid}}
		if strings.Contains(source.Text, "events:") {
			trial.Audit = &record.Audit{}
			trial.Events = []record.EventImpact{{Name: "site_lost", Kind: "link_down", Recovery: record.Recovery{BaselineOps: 50, UnresponsiveS: 1}}}
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

func silent(string) error { return nil }

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
	c, err := Plan(n, dir, registry(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The faster database loses writes on a bad day, one is excluded by its design, and the answer names the one that meets
// the needs.
func TestAnswer(t *testing.T) {
	count := 0
	c := plan(t, t.TempDir(), needsText)
	if err := c.Run(t.Context(), measure(t, &count), silent); err != nil {
		t.Fatal(err)
	}
	a := c.Answer()
	if !strings.HasPrefix(a.Sentence, "Use slow (safe): p99 3") || !strings.Contains(a.Sentence, "2 bad days") {
		t.Errorf("the answer's sentence is %q", a.Sentence)
	}
	if v := a.Candidates[1]; v.Label != "middle, safe" || v.Out != "failed" || !strings.Contains(v.Why, "lost_writes") ||
		!strings.Contains(v.Why, "site_lost") {
		t.Errorf("the second candidate: %+v", v)
	}
	if len(a.Changes) != 2 || !strings.Contains(a.Changes[0], "middle") || !strings.Contains(a.Changes[1], "p99 < 400ms") {
		t.Errorf("changes that would alter the answer: %q", a.Changes)
	}
	left := map[string]string{}
	for _, l := range a.Excluded {
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

// An interrupted race continues with its results, other needs are answered from them, and trials with another load are
// not reused.
func TestMeasurementsAreReused(t *testing.T) {
	dir, all := t.TempDir(), 0
	whole := plan(t, t.TempDir(), needsText)
	if err := whole.Run(t.Context(), measure(t, &all), silent); err != nil {
		t.Fatal(err)
	}
	count, stop := 0, errors.New("cut off")
	by := measure(t, &count)
	cut := func(ctx context.Context, f record.File, out string, lane Lane) (string, error) {
		if count == 3 {
			return "", stop
		}
		return by(ctx, f, out, lane)
	}
	if err := plan(t, dir, needsText).Run(t.Context(), cut, silent); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	c := plan(t, dir, needsText)
	if err := c.Run(t.Context(), by, silent); err != nil {
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
		if err := plan(t, dir, text).Run(t.Context(), by, silent); err != nil {
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

func TestNoCandidateMeetsNeeds(t *testing.T) {
	count := 0
	c := plan(t, t.TempDir(), strings.Replace(needsText, "p99 < 400ms", "p99 < 50ms", 1))
	if err := c.Run(t.Context(), measure(t, &count), silent); err != nil {
		t.Fatal(err)
	}
	if a := c.Answer(); !strings.HasPrefix(a.Sentence, "No candidate meets all needs.") ||
		!strings.Contains(a.Sentence, "No candidate meets p99 < 50ms on the quiet day; the closest is middle (safe) with 101 ms") {
		t.Errorf("the answer's sentence is %q", a.Sentence)
	}
	if err := c.Answer().Err(); !errors.Is(err, ErrNone) {
		t.Errorf("%v, want ErrNone", err)
	}
}

// If every trial was suspect, it is unknown whether a candidate meets the needs.
func TestNoCandidateMeasured(t *testing.T) {
	count := 0
	by := measure(t, &count)
	suspect := func(ctx context.Context, f record.File, out string, lane Lane) (string, error) {
		dir, err := by(ctx, f, out, lane)
		if err == nil {
			err = rewrite(dir, func(t *record.Trial) {
				t.Verdict = record.Verdict{State: record.Suspect, Reasons: []string{"late packets"}}
			})
		}
		return dir, err
	}
	c := plan(t, t.TempDir(), needsText)
	if err := c.Run(t.Context(), suspect, silent); err != nil {
		t.Fatal(err)
	}
	if a := c.Answer(); !errors.Is(a.Err(), ErrNothing) || !strings.Contains(a.Sentence, "it is not known") {
		t.Errorf("%v, want ErrNothing: %s", a.Err(), a.Sentence)
	}
}

func TestMistakesInNeeds(t *testing.T) {
	for change, want := range map[string]string{
		"prefer: [p99, cost.memory]|prefer: [p98]":                         "prefer[0]",
		"events.site_lost|events.site_gone":                                "no bad day has an event",
		"link_cut: any|site_lost: b":                                       "is also bad_days[0]",
		"budget: 30m|budget: 30m\nbudgets: 1m":                             "budgets",
		"link_cut: any|{}":                                                 "the day has no disturbance",
		"p99 < 400ms|p99 below 400ms":                                      "must[0]",
		"lost_writes == 0|read: {}":                                        "must[1]",
		"target: 50|target: 1000000000":                                    "client's machine cannot send",
		"client: a|client: [a, a]":                                         "two clients are named",
		"client: a\nload: {workload: b|client: [a, b]\nload: {workload: d": "use the same keys",
		"p99 < 400ms|c.p99 < 400ms":                                        "no client is named",
		"prefer: [p99, cost.memory]|consider: [..., slow]":                 "put it last",
		"cloud: {sites: [a, b, c], defaults: {rtt: 10ms}}\n|":              "cloud is missing",
		"budget: 30m|consider: [{name: aurora, database: slow}]":           "aurora has no cluster",
		"budget: 30m|consider: [" + ownAurora + ", " + ownAurora + "]":     "two clusters are named aurora",
		"budget: 30m|consider: [{name: aurora, database: {name: slow, cluster: [\"x\"], count: 3}}]": "exclude each other",
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

// The example needs files are valid.
func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../../../examples/needs/*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("examples: %v, %v", paths, err)
	}
	for _, path := range paths {
		if _, err := Read(path); err != nil {
			t.Error(err)
		}
	}
}

func TestUnanswerableNeeds(t *testing.T) {
	for change, want := range map[string]string{
		"budget: 30m|budget: 20s":                     "but the budget is 20s",
		"prefer: [p99, cost.memory]|consider: [fast]": "no possible candidate",
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
		if _, err := Plan(n, t.TempDir(), registry(), Options{}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", with, err, want)
		}
	}
}

// issue is a needs file with all keys, parsed exactly.
const issue = `cloud: {from: azure8, mesh: {links: 24}}
client: [Singapore, Dubai]
load: {workload: b, target: 400, records: 100000}
must:
  - p99 < 400ms
  - lost_writes == 0
  - events.site_lost.unresponsive < 30s
  - availability > 99.9%
  - read: linearizable
bad_days: [site_lost: Pune, link_cut: any, far: {of: Virginia, scale: 3}, flap: any]
prefer: [p99, cost.memory, cost.traffic]
consider: [slow, ...]
budget: 40min
`

// Leaders are placed at the nearest site that no bad day cuts off from the clients.
func TestLeaderPlacement(t *testing.T) {
	for lost, want := range map[string]string{"c": "b", "b": "c", "a": "b"} {
		text := strings.Replace(
			needsText, "defaults: {rtt: 10ms}}",
			"defaults: {rtt: 10ms}, links: [{between: [a, b], rtt: 2ms}, {between: [a, c], rtt: 4ms}]}", 1,
		)
		text = strings.Replace(text, "bad_days: [site_lost: b,", "bad_days: [site_lost: "+lost+",", 1)
		text = strings.Replace(text, "site_lost.unresponsive", "link_cut.unresponsive", 1)
		n := plan(t, t.TempDir(), text).Needs
		if p := n.placeOf([]string{"b", "c"}); p.Near != want || p.Site != want {
			t.Errorf("if %s may be lost: leaders are at %s of %s, want %s", lost, p.Near, p.Site, want)
		}
	}
}

// A client of an isolated site still reaches the nodes of this site: the site is cut off, not its nodes.
func TestClientAtLostSite(t *testing.T) {
	c := plan(
		t, t.TempDir(),
		strings.Replace(needsText, "bad_days: [site_lost: b, link_cut: any]", "bad_days: [site_lost: a, flap: a, site_lost: b]", 1),
	)
	for day, want := range map[string]string{
		"site_lost a": "a~b a~c client~b client~c", "flap a": "a~b a~c client~b client~c", "site_lost b": "of b",
	} {
		e := c.Needs.dayEvents(*c.Needs.badDay(day))[0].(map[string]any)
		cut, _ := e["link_down"].(map[string]any)
		if e["link_flap"] != nil {
			cut = e["link_flap"].(map[string]any)
		}
		got := fmt.Sprint("of ", cut["of"])
		if ids, ok := cut["ids"].([]string); ok {
			got = strings.Join(slices.Sorted(slices.Values(ids)), " ")
		}
		if got != want {
			t.Errorf("cut links on the day %q: %s, want %s", day, got, want)
		}
	}
}

func TestEveryNeedIsParsed(t *testing.T) {
	c := plan(t, t.TempDir(), issue)
	n := c.Needs
	if got := n.Budget.Duration(); got != 40*time.Minute {
		t.Errorf("the budget is %v", got)
	}
	if len(c.Needs.built.Links) < 24 || !c.Needs.built.Overlay.Routed() || len(c.Notes) != 1 {
		t.Errorf("%d links, overlay %+v, notes %q", len(c.Needs.built.Links), c.Needs.built.Overlay, c.Notes)
	}
	if x := c.Candidates[0].Database; x != "slow" || len(c.Candidates) != 2 { // slow first, then middle; fast loses writes
		t.Errorf("the candidates are %+v", c.Candidates)
	}
	text, err := n.experimentYAML(c.Candidates[0], "site_lost Pune")
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Parse("x.yaml", text, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	pools := e.Pools()
	if len(pools) != 2 || pools[0].Name != "singapore" || pools[1].ClientSpec(e).Site != "Dubai" ||
		pools[0].Workload.Target+pools[1].Workload.Target != 400 {
		t.Errorf("the clients are %+v", pools)
	}
	if got := e.AuditedPools(); len(got) != 2 {
		t.Errorf("the writes of %d clients are audited, want both", len(got))
	}
	for day, want := range map[string]int{"quiet": 2, "site_lost Pune": 3, "link_cut any": 2, "far Virginia": 2, "flap any": 2} {
		if got := n.assertions(day); len(got) != want {
			t.Errorf("on the day %q, %d needs are checked, want %d: %+v", day, len(got), want, got)
		}
	}
}

// Parallel and sequential trials give the same answer, and the budget is wall-clock time.
func TestConcurrentHeats(t *testing.T) {
	one, many := 0, 0
	a, b := plan(t, t.TempDir(), needsText), plan(t, t.TempDir(), needsText+"parallel: 3\n")
	b.Elsewhere = true // this machine's capacity does not limit generated trials
	if err := errors.Join(a.Run(t.Context(), measure(t, &one), silent), b.Run(t.Context(), measure(t, &many), silent)); err != nil {
		t.Fatal(err)
	}
	if x, y := a.Answer(), b.Answer(); x.Candidates[0].ID != y.Candidates[0].ID || one != many {
		t.Errorf("%s after %d trials, side by side %s after %d", x.Candidates[0].ID, one, y.Candidates[0].ID, many)
	}
}

func TestCostIsWallTime(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	run := func(from, to int) *record.Dir {
		return &record.Dir{Run: record.Run{Started: at(from), Finished: at(to)}}
	}
	var c Contest
	for _, x := range []struct {
		from, to int
		want     float64
	}{{0, 14, 14}, {5, 19, 5}, {6, 12, 0}, {30, 40, 10}, {-5, 50, 5 + 11 + 10}} {
		if got := c.addPeriod(run(x.from, x.to)); got != x.want {
			t.Errorf("from %d to %d: %v s more, want %v", x.from, x.to, got, x.want)
		}
	}
}

// A cell limited by the machine decides nothing: the candidate is measured on fewer nodes, and the answer reports it.
func TestReducedMembers(t *testing.T) {
	for name, limit := range map[string]func(*record.Trial){
		"bound by it": func(t *record.Trial) { t.Bound = &record.Bound{By: "machine", Text: "1.9 of 2 cores"} },
		"crowded": func(t *record.Trial) {
			t.Bound = &record.Bound{By: "target", MachineShare: 0.89}
			t.Verdict = record.Verdict{
				State: record.Suspect, Kinds: []string{"driver late"},
				Reasons: []string{"late with 1.9 of 2 cores busy"},
			}
		},
	} {
		t.Run(name, func(t *testing.T) { cannotCarry(t, limit) })
	}
}

// A response time that is not met because servers waited for this machine decides nothing. One that is met
// nevertheless, or that the database did not meet, does.
func TestMachineBoundLatencyIsVoid(t *testing.T) {
	cause := func(by string, of bool) *record.LatencyBound {
		c := record.LatencyCause{By: by, OfMachine: of, Text: "500 ms: round trips 10"}
		return &record.LatencyBound{P50: c, P99: c}
	}
	for name, tt := range map[string]struct {
		p99  float64
		by   *record.LatencyBound
		void string
		need string
	}{
		"processors": {
			500e3, cause("machine", true),
			"p99 < 400ms is not decided (measured 500 ms): this machine's CPUs determined the 99th percentile, 500 ms",
			Undecided,
		},
		"disk":             {500e3, cause("disk", true), "this machine's disk determined", Undecided},
		"emulated disk":    {500e3, cause("disk", false), "", NotMet},
		"the database":     {500e3, cause("database", false), "", NotMet},
		"met nevertheless": {300e3, cause("machine", true), "", Met},
		"an older version": {500e3, nil, "", NotMet},
	} {
		t.Run(name, func(t *testing.T) {
			count := 0
			by := measure(t, &count)
			c := plan(t, t.TempDir(), needsText)
			if err := c.Run(t.Context(), func(ctx context.Context, f record.File, out string, lane Lane) (string, error) {
				dir, err := by(ctx, f, out, lane)
				if err == nil && strings.HasPrefix(filepath.Base(f.Path), "slow") {
					err = rewrite(dir, func(x *record.Trial) {
						x.LatencyBound = tt.by
						x.Operations["READ"] = record.OperationSummary{Count: 500, Response: record.Latency{P99: tt.p99, Max: tt.p99}}
					})
				}
				return dir, err
			}, silent); err != nil {
				t.Fatal(err)
			}
			a := c.Answer()
			i := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.Database == "slow" })
			v := a.Candidates[i]
			if (v.Out == race.Void) != (tt.void != "") || !strings.Contains(v.Why, tt.void) {
				t.Errorf("%q: %s; want %q", v.Out, v.Why, tt.void)
			}
			j := slices.IndexFunc(v.Needs, func(n Need) bool { return n.Text == "p99 < 400ms" && n.Day == race.Quiet })
			if got := v.Needs[j].State; got != tt.need {
				t.Errorf("the need is %s, want %s", got, tt.need)
			}
		})
	}
}

func cannotCarry(t *testing.T, limit func(*record.Trial)) {
	text := strings.Replace(needsText, "[a, b, c]", "[a, b, c, d, e]", 1)
	count := 0
	by := measure(t, &count)
	bind := func(ctx context.Context, f record.File, out string, lane Lane) (string, error) {
		dir, err := by(ctx, f, out, lane)
		if err == nil && strings.HasPrefix(filepath.Base(f.Path), "slow") && !strings.Contains(f.Text, "nodes:") {
			err = rewrite(dir, limit)
		}
		return dir, err
	}
	dir := t.TempDir()
	c := plan(t, dir, text)
	if err := c.Run(t.Context(), bind, silent); err != nil {
		t.Fatal(err)
	}
	a := c.Answer()
	v := a.Candidates[0]
	if v.Database != "slow" || len(v.Members) != 3 || v.Members[1] != "b" || !strings.Contains(v.Reduced, "1.9 of 2 cores") || a.Void != 1 {
		t.Errorf("%+v, %d decided nothing", v, a.Void)
	}
	again := plan(t, dir, text)
	if err := again.Replay(); err != nil {
		t.Fatal(err)
	}
	if got := again.Answer().Sentence; got != a.Sentence {
		t.Errorf("replayed: %q, was %q", got, a.Sentence)
	}
	small, err := Plan(c.Needs, dir, registry(), Options{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if x := small.Candidates[0]; len(x.Members) != 3 || !strings.Contains(x.Reduced, "GB") {
		t.Errorf("without memory for five members: %+v", x)
	}
}

// rewrite changes a trial of a run.
func rewrite(dir string, change func(*record.Trial)) error {
	path := filepath.Join(dir, "summary.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var s record.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	change(&s.Trials[0])
	if text, err = json.Marshal(s); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// Only one command uses a folder at a time, and the folder keeps its needs.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	c := plan(t, dir, needsText)
	release, err := c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if s, err := ReadState(dir); err != nil || !s.Running {
		t.Errorf("%+v, %v: want a running choice", s, err)
	}
	if _, err := plan(t, dir, needsText).Lock(); !errors.Is(err, ErrFolder) {
		t.Errorf("locking a locked folder: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	n, err := ReadSavedNeeds(dir)
	if err != nil || len(n.BadDays) != 2 {
		t.Errorf("stored needs: %+v, %v", n, err)
	}
	if s, err := ReadState(dir); err != nil || s.Running {
		t.Errorf("%+v, %v: want a finished choice", s, err)
	}
	if _, err := ReadSavedNeeds(t.TempDir()); !errors.Is(err, ErrFolder) {
		t.Errorf("needs of a folder without a choice: %v", err)
	}
}

// All clients together stay within the default connection limit of a database.
func TestConnectionsOfAChoice(t *testing.T) {
	for _, tt := range []struct{ clients, threads, want int }{{0, 32, 256}, {1, 32, 256}, {2, 32, 128}, {4, 32, 64}, {1, 100, 400}} {
		n := Needs{Client: make([]string, tt.clients)}
		if got := n.inFlight(tt.threads / max(1, tt.clients)); got != tt.want {
			t.Errorf("%d clients, %d threads: %d requests under way at each, want %d", tt.clients, tt.threads, got, tt.want)
		}
	}
}
