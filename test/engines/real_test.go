package engines

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/userspace"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/test/testkit"
)

// realFile is a trial on machines that represent its sites. The distances of its topology are not used.
const realFile = `
name: real
topology:
  sites: [Oslo, Bergen, Kirkenes]
  defaults: {rtt: 1ms, loss: 50%}
client: Oslo
database: redis
workload: {name: a, records: 200, threads: 4, target: 100}
stop: {time: 8s}
warmup: 1s
retries: 0
events:
  - {at: 2s, for: 2s, latency: {between: [Oslo, Bergen], add: 25ms}, name: farther}
`

// distances are the round trips between the machines, in ms: far more than the delay of this machine's busy CPUs.
var distances = map[[2]int]float64{{1, 2}: 30, {1, 3}: 60, {2, 3}: 90}

// Links between machines are not emulated but measured. The measured network becomes a topology, whose emulation on one
// machine has the same distances between sites.
func TestRealLinks(t *testing.T) {
	testkit.OptIn(t, "SKERRY_REAL_LINKS", "1 for a trial on real links and its copy; a minute")
	r := newRoom(t)
	r.reachable()
	r.apart()
	h1 := r.machines["h1"]
	run := func(script string) string {
		t.Helper()
		out, err := h1.command("bash", "-ec", `cd "$0"; `+script, r.share).CombinedOutput()
		t.Logf("%s\n%s", script, out)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	run(`./skerry run real.yaml --machines far.yaml --set links=real --out /root/runs && cp -rL /root/runs/latest "$0/real"`)
	real := r.trialOf("real")
	rows := r.rowsOf("real")
	for _, l := range real.Fidelity.Links {
		want := r.between(l.From, l.To)
		if l.Real != (want > 0) || l.Real && (l.Seen == nil || l.RTTErrorMS != 0) {
			t.Errorf("%s: %+v, %v ms between the machines", l.ID, l, want)
			continue
		}
		if l.Real {
			near(t, l.ID+" before the trial", l.RTTMS, want)
			near(t, l.ID+" in the trial", l.Seen.MedianMS, want)
		}
		if l.Real && rows[l.ID] < 4 {
			t.Errorf("%s was measured in %d seconds of 8", l.ID, rows[l.ID])
		}
		if l.ID == "Oslo~Bergen" && l.Seen.MaxMS < want+40 {
			t.Errorf("an event added 50 ms to %s, and its longest round trip took %.1f ms", l.ID, l.Seen.MaxMS)
		}
	}
	if s := strings.Join(real.Verdict.Reasons, "; "); strings.Contains(s, "RTT") || strings.Contains(s, "no evidence") {
		t.Errorf("the trial is %s: %s", real.Verdict.State, s)
	}

	run(`./skerry machines measure far.yaml --for 5s -o measured.yaml --trace measured.csv
cat measured.yaml; head -5 measured.csv
./skerry validate real.yaml --set topology=measured.yaml --set events='[]' --set 'drift={trace: measured.csv}'
./skerry run real.yaml --set topology=measured.yaml --out /root/runs && cp -rL /root/runs/latest "$0/emulated"`)
	copied := r.trialOf("emulated")
	if s := strings.Join(copied.Verdict.Reasons, "; "); strings.Contains(s, "the bandwidth of") {
		t.Errorf("the emulated copy is %s: %s", copied.Verdict.State, s)
	}
	for _, l := range copied.Fidelity.Links {
		if want := r.between(l.From, l.To); want > 0 {
			near(t, l.ID+" of the copy", l.RTTMS, want)
		}
	}
	both, err := compare.Runs([]string{r.path("real"), r.path("emulated")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(both.Pairs) != 1 || len(both.Pairs[0].Links) < 3 {
		t.Fatalf("compared runs: %+v", both.Pairs)
	}
	for _, l := range both.Pairs[0].Links {
		if l.A.Real && (l.Ratio < 0.7 || l.Ratio > 1.4) {
			t.Errorf("%s – %s: %+v", l.From, l.To, l)
		}
	}
	out := run(`./skerry lab up ring:3 --name hand --machines far.yaml --links real --place n1=one --place n2=two --place n3=three; ./skerry lab links hand; ./skerry lab down hand
! ./skerry lab up ring:3 --machines far.yaml --links real --place '*=one'`)
	if strings.Count(out, "real") < 3 || !strings.Contains(out, "real links need several machines, all nodes are on one") {
		t.Errorf("by hand:\n%s", out)
	}
}

// near allows for the cost of encryption and of busy CPUs.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.3*want {
		t.Errorf("%s: a round trip of %.1f ms, want %.0f", what, got, want)
	}
}

// apart connects the machines by links with distances, in addition to the switch to the controller, and writes a
// machines file.
func (r *room) apart() {
	r.t.Helper()
	exe, err := program()
	if err != nil {
		r.t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "skerry") // the folder of the test may be too long for a socket's path
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { os.RemoveAll(dir) })
	engine, err := userspace.Start(r.t.Context(), userspace.Options{Command: []string{exe, "agent", "link"}, Socket: filepath.Join(dir, "link.sock"), ExitWithOwner: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { engine.Close() })
	at := func(n int) *machine { return r.machines["h"+strconv.Itoa(n)] }
	for n := 1; n <= 3; n++ {
		r.must(at(n).command("ip", "addr", "add", fmt.Sprintf("10.98.0.%d/32", n), "dev", "lo"))
	}
	for ends, rtt := range distances {
		a, b := ends[0], ends[1]
		q := link.Quality{Latency: time.Duration(rtt / 2 * float64(time.Millisecond))}
		name := fmt.Sprintf("far%d%d", a, b)
		if err := engine.Create(r.t.Context(), []link.Spec{{
			ID: name, AB: q, BA: q,
			A: link.End{Netns: fmt.Sprintf("/proc/%d/ns/net", at(a).init), Device: name},
			B: link.End{Netns: fmt.Sprintf("/proc/%d/ns/net", at(b).init), Device: name},
		}}); err != nil {
			r.t.Fatal(err)
		}
		for _, way := range [][2]int{{a, b}, {b, a}} {
			r.must(at(way[0]).command("ip", "link", "set", name, "up"))
			r.must(at(way[0]).command("ip", "route", "add", fmt.Sprintf("10.98.0.%d/32", way[1]), "dev", name, "src", fmt.Sprintf("10.98.0.%d", way[0])))
		}
	}
	there := threeMachines
	for n, at := range []string{"one, site: Oslo", "two, site: Bergen", "three, site: Kirkenes"} {
		name, _, _ := strings.Cut(at, ",")
		there = strings.Replace(there, "name: "+name+",", fmt.Sprintf("name: %s, addr: 10.98.0.%d,", at, n+1), 1)
	}
	r.write("far.yaml", there)
	r.write("real.yaml", realFile)
}

// between returns the distance between the machines of two nodes, 0 for one machine.
func (r *room) between(a, b string) float64 {
	number := func(node string) int {
		return map[string]int{"Oslo": 1, "client": 1, "Bergen": 2, "Kirkenes": 3}[node]
	}
	return distances[[2]int{min(number(a), number(b)), max(number(a), number(b))}]
}

// trialOf returns the only trial of a run, which must have ended ok.
func (r *room) trialOf(dir string) record.Trial {
	r.t.Helper()
	x := r.trials(dir, 1)[0]
	if x.State != record.TrialOK || x.Goodput == 0 {
		r.t.Fatalf("%s: %+v", dir, x)
	}
	return x
}

// rowsOf counts the seconds in which each real link of a run was measured.
func (r *room) rowsOf(dir string) map[string]int {
	r.t.Helper()
	d, err := record.Open(r.path(dir))
	if err != nil {
		r.t.Fatal(err)
	}
	links, err := d.Links(1)
	if err != nil {
		r.t.Fatal(err)
	}
	network, err := d.Network(1)
	if err != nil || len(network) == 0 {
		r.t.Errorf("%s: %d seconds of the network, %v", dir, len(network), err)
	}
	rows := map[string]int{}
	for _, x := range links {
		rows[x.Link]++
	}
	return rows
}
