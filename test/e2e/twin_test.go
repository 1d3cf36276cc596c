package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skerry/internal/database/redis"
	"skerry/internal/evidence/stats"
	"skerry/internal/record"
)

// twinCloud has a node for each of three masters, and the client at the first site.
const twinCloud = `{name: twin, sites: [a, b, c], nodes: [a, b, c, {name: client, site: a, role: client}], defaults: {rtt: 4ms}}`

// TestLabAndOwnCluster drives one Redis Cluster both ways, in the same namespaces: as the database of a lab, and as a
// cluster that Skerry did not start, from the client's node. The records are alike. They differ in what Skerry can see
// only in its own lab.
//
// SKERRY_TWINS=5 also compares the figures, with so many repetitions: throughput and p99 are within each other's
// intervals. It needs the machine to itself.
func TestLabAndOwnCluster(t *testing.T) {
	repetitions, stop := 1, "stop: {operations: 2000}"
	if n, err := strconv.Atoi(os.Getenv("SKERRY_TWINS")); err == nil {
		repetitions, stop = n, "stop: {time: 20s}"
	}
	b := newBench(t)
	load := fmt.Sprintf("workload: {name: a, records: 500, threads: 8}\nwarmup: 1s\n%s\nrepetitions: %d\nretries: 0\naudit: true\nseed: 1\n", stop, repetitions)
	b.run(0, "run", b.write("lab.yaml", "name: lab\ntopology: "+twinCloud+"\ndatabase: redis\n"+load))
	lab := b.recorded()

	servers := b.startTwin()
	own := b.write("own.yaml", "name: own\ndatabase: {name: redis, cluster: ["+servers+"]}\n"+load)
	b.run(0, "lab", "exec", "-l", "twin", "client", "--", b.exe, "run", own)
	ours := b.recorded()
	b.run(0, "lab", "down", "twin")

	for i := range lab.Trials {
		x, y := lab.Trials[i], ours.Trials[i]
		if x.State != record.TrialOK || y.State != record.TrialOK || x.Outcomes.Failed+y.Outcomes.Failed > 0 {
			t.Fatalf("%s %+v and %s %+v", x.State, x.Outcomes, y.State, y.Outcomes)
		}
		if repetitions == 1 && x.Outcomes != y.Outcomes {
			t.Errorf("the outcomes are %+v and %+v", x.Outcomes, y.Outcomes)
		}
		if x.Machine.Database != y.Machine.Database || x.Load.Records != y.Load.Records || !reflect.DeepEqual(x.Keys, y.Keys) ||
			x.Audit.Lost != y.Audit.Lost || x.Audit.Unexpected != y.Audit.Unexpected || x.Audit.Unread != y.Audit.Unread {
			t.Errorf("the records differ:\n%+v, %+v\n%+v, %+v", x.Machine, x.Audit, y.Machine, y.Audit)
		}
		only, missing := differentFields(t, x, y)
		if !slices.Equal(missing, nil) || !slices.Equal(only, []string{"traffic"}) {
			t.Errorf("only the lab's record has %v, want traffic; only the other has %v", only, missing)
		}
	}
	if repetitions == 1 {
		return
	}
	for name, figure := range map[string]func(record.Trial) float64{
		"throughput":     func(t record.Trial) float64 { return t.Throughput },
		"p99 of reads":   func(t record.Trial) float64 { return t.Operations["READ"].Response.P99 },
		"p99 of updates": func(t record.Trial) float64 { return t.Operations["UPDATE"].Response.P99 },
	} {
		x, y := estimate(lab, figure), estimate(ours, figure)
		t.Logf("%s: lab %.5g ± %.2g, cluster %.5g ± %.2g", name, x.Mean, x.HalfWidth, y.Mean, y.HalfWidth)
		if d := x.Mean - y.Mean; max(d, -d) > x.HalfWidth+y.HalfWidth {
			t.Errorf("%s: the intervals do not overlap", name)
		}
	}
}

func estimate(s record.Summary, figure func(record.Trial) float64) stats.Estimate {
	var values []float64
	for _, t := range s.Trials {
		values = append(values, figure(t))
	}
	return stats.EstimateMean(values)
}

func (b *bench) recorded() record.Summary {
	b.t.Helper()
	return b.summary(b.path("runs/latest"))
}

// differentFields returns the fields of the record of a trial that only one of two has.
func differentFields(t *testing.T, a, b record.Trial) (onlyA, onlyB []string) {
	t.Helper()
	fields := func(x record.Trial) map[string]any {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]any
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	x, y := fields(a), fields(b)
	for _, name := range slices.Sorted(maps.Keys(x)) {
		if _, ok := y[name]; !ok {
			onlyA = append(onlyA, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(y)) {
		if _, ok := x[name]; !ok {
			onlyB = append(onlyB, name)
		}
	}
	return onlyA, onlyB
}

// startTwin makes the cloud again as a lab, and the Redis Cluster in it as a user would. It returns the servers.
func (b *bench) startTwin() string {
	b.t.Helper()
	in, err := redis.New().Find("", "")
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(0, "lab", "up", b.write("twin.yaml", twinCloud))
	var up []struct {
		Nodes []struct{ Name, Addr string }
	}
	status := b.run(0, "lab", "status", "--json").stdout.String()
	if err := json.Unmarshal([]byte(status), &up); err != nil || len(up) != 1 {
		b.t.Fatalf("%v: %s", err, status)
	}
	var servers []string
	for _, n := range up[0].Nodes {
		if n.Name == "client" {
			continue
		}
		servers = append(servers, n.Addr+":6379")
		r := b.command("lab", "exec", "-l", "twin", n.Name, "--", in.Programs["redis-server"], "--bind", n.Addr, "--port", "6379",
			"--protected-mode", "no", "--cluster-enabled", "yes", "--cluster-announce-ip", n.Addr, "--save", "", "--appendonly", "yes",
			"--dir", b.t.TempDir())
		r.cmd.Env = append(r.cmd.Env, in.Env...)
		r.start()
		b.t.Cleanup(func() { _ = r.cmd.Process.Signal(syscall.SIGTERM) }) // the server may have ended with the lab
		b.await("Redis on "+n.Name, func() bool { return strings.Contains(r.stdout.String(), "Ready to accept connections") })
	}
	args := slices.Concat([]string{"lab", "exec", "-l", "twin", "client", "--", in.Programs["redis-cli"], "--cluster", "create"}, servers, []string{"--cluster-yes"})
	form := b.command(args...)
	form.cmd.Env = append(form.cmd.Env, in.Env...)
	if code := form.start().wait(); code != 0 {
		b.t.Fatalf("redis-cli: exit %d\n%s%s", code, form.stdout.String(), form.stderr.String())
	}
	for _, s := range servers { // CLUSTERDOWN until each node has detected a majority
		host, _, _ := strings.Cut(s, ":")
		b.await("the cluster at "+s, func() bool {
			r := b.command("lab", "exec", "-l", "twin", "client", "--", in.Programs["redis-cli"], "-h", host, "cluster", "info")
			r.cmd.Env = append(r.cmd.Env, in.Env...)
			return r.start().wait() == 0 && strings.Contains(r.stdout.String(), "cluster_state:ok")
		})
	}
	return `"` + strings.Join(servers, `", "`) + `"`
}
