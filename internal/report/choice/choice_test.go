package choice

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/evidence/race"
	"skerry/internal/record"
	"skerry/internal/record/metric"
	"skerry/internal/run/choose"
)

var update = flag.Bool("update", false, "rewrite the golden page")

// dir has the stored run to which the generated answer refers.
const dir = "../webdata/testdata"

// answer is generated: two candidates meet the needs, one does not, one was not measured.
func answer() choose.Answer {
	const lost, killed, quiet = "site_lost Faro", "killed any", race.Quiet
	figures := func(p99, half, memory float64, n int) []choose.Figure {
		return []choose.Figure{{Name: "p99", Unit: metric.Time, Mean: p99, Low: p99 - half, High: p99 + half, N: n},
			{Name: "cost.memory", Unit: metric.Bytes, Mean: memory, N: n}}
	}
	verdict := func(name, setting, gives string, v choose.Verdict) choose.Verdict {
		v.Candidate = choose.Candidate{Database: name, Version: "1.0",
			Choice: database.Choice{Name: setting, GivesUp: gives, Reads: database.ReadsLinearizable, Options: database.Options{"leader": "Porto"}}}
		v.ID, v.Label = v.Candidate.ID(), v.Candidate.Label()
		v.Runs = map[string][]string{quiet: {"two-distances"}, lost: {"two-distances"}, killed: {"two-distances"}}
		v.Files = map[string]string{quiet: "experiments/" + v.ID + "-quiet.yaml", lost: "experiments/" + v.ID + "-site-lost-faro.yaml",
			killed: "experiments/" + v.ID + "-killed-any.yaml"}
		return v
	}
	needs := func(p99, available string, state string, n int) []choose.Need {
		return []choose.Need{{Text: "p99 < 100ms", Day: quiet, State: choose.Met, Value: p99, N: n},
			{Text: "availability > 97%", Day: quiet, State: choose.Met, Value: "100 %", N: n},
			{Text: "availability > 97%", Day: lost, State: state, Value: available, N: n},
			{Text: "lost_writes == 0", Day: lost, State: choose.Met, Value: "0", N: n}}
	}
	return choose.Answer{Sentence: "Use etcd (leader at the client): p99 42 ms (40 to 44). It met all needs on the quiet day and " +
		"on 2 bad days, and lost no acknowledged write in 3 audited trials. " +
		"The runner-up is galera (reads wait): p99 61 ms (57 to 65).",
		Sure: "In 100 repetitions of these trials, etcd would rank first 98 times, galera 2 times.", Days: []string{quiet, lost, killed},
		Prefer:  []string{"p99", "cost.memory"},
		Clients: []string{"Lisbon", "Porto"}, Load: "workload b on 1000 records, 100 requests a second", Trials: 11, Void: 1, SpentS: 290,
		BudgetS: 300, Machine: record.Machine{Cores: 2, MemoryBytes: 25e9},
		Changes:  []string{`The tightest need of etcd is "availability > 97%": it measured 97.4 % on the bad day "site_lost Faro".`},
		Notes:    []string{"cassandra, quorum: 8 members need 8.0 GB. Measured on 3 nodes: Faro, Lisbon, Porto."},
		Excluded: []choose.Excluded{{Who: "etcd, local reads", Why: "reads must be linearizable, but are any"}},
		Candidates: []choose.Verdict{
			verdict("etcd", "leader at the client", "a write waits for the nearer half of the members",
				choose.Verdict{Wins: 0.98, Figures: figures(42e-3, 2e-3, 400e6, 3), Needs: needs("43.1 ms", "97.4 %", choose.Met, 3)}),
			verdict("galera", "reads wait", "every write waits for all members",
				choose.Verdict{Wins: 0.02, Figures: figures(61e-3, 4e-3, 900e6, 2), Needs: needs("64 ms", "98 %", choose.Met, 1)}),
			verdict("redis", "one copy", "records of a site that is cut off are out of reach",
				choose.Verdict{Out: race.Failed, Why: `availability > 97% is not met on the bad day "site_lost Faro"`,
					Figures: figures(8e-3, 1e-3, 190e6, 2), Needs: needs("9 ms", "86.7 %", choose.NotMet, 1)}),
			verdict("postgres", "near", "a failover waits",
				choose.Verdict{Out: race.Waiting, Why: "the budget ended before it was tried on all bad days", Figures: figures(80e-3, 0, 500e6, 1),
					Needs: []choose.Need{{Text: "p99 < 100ms", Day: quiet, State: choose.Met, Value: "80 ms", N: 1},
						{Text: "lost_writes == 0", Day: lost, State: choose.Undecided}}}),
		}}
}

// The page has every part of the answer; web/test/screens.spec.ts checks its appearance.
func TestPage(t *testing.T) {
	var got bytes.Buffer
	if err := HTML(&got, answer(), dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "answer.html")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, diff)
	}
}

// The text reports the results for each need of the candidates that meet all, and the reason for excluding others.
func TestText(t *testing.T) {
	var got strings.Builder
	if err := Text(&got, answer()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Use etcd (leader at the client): p99 42 ms (40 to 44)",
		"  availability > 97%: met: 97.4 % in the worst of 3 trials, site_lost Faro\n",
		"redis, one copy: availability > 97% is not met on the bad day \"site_lost Faro\"\n", "98 of 100", "would rank first 98 times",
		"not tried: etcd, local reads"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &got)
		}
	}
	if strings.Contains(got.String(), "86.7") {
		t.Errorf("the text lists each need of an excluded candidate:\n%s", &got)
	}
}

// A strongly asymmetric interval is drawn and described; the line connects the Pareto-optimal candidates.
func TestTradeOff(t *testing.T) {
	a := answer()
	a.Candidates[0].Figures[0].Low, a.Candidates[0].Figures[0].High = 20e-3, 120e-3
	picture := string(tradeOff(a, 1))
	for _, want := range []string{"etcd, leader at the client: 40 ms (20 to 120)", ">redis, one copy</text>", "frontier"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the chart lacks %q:\n%s", want, picture)
		}
	}
}
