package bottleneck

import (
	"testing"
)

// idle is a trial that only waits for distance; each case changes its subject.
func idle() Evidence {
	return Evidence{
		Threads: 32, Throughput: 326, LatencyS: 0.098, RoundTripS: 0.095, FarthestS: 0.2,
		Client: Use{0.1, 2}, Machine: Use{0.24, 2},
		Nodes: []NodeUse{{Name: "Pune", Use: Use{0.05, 2}}, {Name: "Seoul", Use: Use{0.06, 1}}},
		Links: []LinkUse{{"Pune", "Seoul", Use{1e6, 1e9}}, {"Seoul", "Pune", Use{1e6, 0}}},
	}
}

// near has operations wait for more than distance.
func near(e *Evidence) { e.RoundTripS, e.FarthestS = 0.001, 0.002 }

func TestExplainThroughput(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*Evidence)
		by, what string
		text     string
	}{
		"distance": {func(*Evidence) {}, Distance, "", "32 threads wait 98 ms each, CPU utilisation 12 %"},
		"replication": {func(e *Evidence) { e.LatencyS, e.Throughput = 0.45, 71 }, Distance, "",
			"32 threads wait 450 ms each, CPU utilisation 12 %"},
		"disk": {func(e *Evidence) { e.LatencyS, e.RoundTripS, e.FarthestS, e.Throughput = 0.02, 0.001, 0.002, 1600 }, Database, "",
			"32 threads wait 20 ms each; round trips take 1; CPU utilisation 12 %"},
		"target":         {func(e *Evidence) { e.Target = 330 }, Target, "", "target of 330 operations per second reached"},
		"target missed":  {func(e *Evidence) { e.Target = 400 }, Distance, "", "32 threads wait 98 ms each, CPU utilisation 12 %"},
		"a busy machine": {func(e *Evidence) { e.Machine.Used = 2 }, Distance, "", "32 threads wait 98 ms each, CPU utilisation 100 %"},
		"client":         {func(e *Evidence) { near(e); e.Client.Used = 1.9 }, Client, "", "CPU utilisation of the client 95 %"},
		"machine":        {func(e *Evidence) { near(e); e.Machine.Used = 1.96 }, Machine, "", "CPU utilisation of the machine 98 %"},
		"node": {func(e *Evidence) { near(e); e.Nodes[1].Used = 0.97 }, Node, "Seoul",
			"CPU utilisation of Seoul is 97 %, throttled 0 % of the time"},
		"node held back": {func(e *Evidence) { near(e); e.Nodes[1].Used, e.Nodes[1].Throttled = 0.8, 0.4 }, Node, "Seoul",
			"CPU utilisation of Seoul is 80 %, throttled 40 % of the time"},
		"node held on two": {func(e *Evidence) { near(e); e.Nodes[1].Used, e.Nodes[1].Throttled = 0.97, 1.9 }, Node, "Seoul",
			"CPU utilisation of Seoul is 97 %, throttled 100 % of the time"},
		"bandwidth": {func(e *Evidence) { near(e); e.Links[0].Used = 0.95e9 }, Bandwidth, "Pune~Seoul",
			"utilisation of the link from Pune to Seoul is 95 %"},
		"not answered": {func(e *Evidence) { near(e); e.Target, e.Throughput, e.Dropped, e.LatencyS = 200, 162, 37.5, 0.046 }, Database, "",
			"37.5 of the 200 operations per second of the target were not sent, since earlier ones were unanswered; CPU utilisation 12 %"},
		"a slow client": {func(e *Evidence) { near(e); e.Target, e.Throughput, e.LatencyS = 200, 162, 0.046 }, Client, "",
			"of 32 threads, on average 7.45 wait for an answer"},
		"idle threads": {func(e *Evidence) { e.Throughput = 100 }, Client, "", "of 32 threads, on average 9.8 wait for an answer"},
		"no measurement": {func(e *Evidence) { *e = Evidence{Threads: 1, Throughput: 10, LatencyS: 0.1} }, Database, "",
			"1 threads wait 100 ms each; round trips take 0; CPU utilisation 0 %"},
	} {
		e := idle()
		tt.change(&e)
		if got := ExplainThroughput(e); got.By != tt.by || got.What != tt.what || got.Text != tt.text {
			t.Errorf("%s: bound by %s %s: %s; want %s %s: %s", name, got.By, got.What, got.Text, tt.by, tt.what, tt.text)
		}
	}
}
