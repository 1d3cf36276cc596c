package serve

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestMetrics(t *testing.T) {
	b := newBench(t, "")
	b.run("ended", true)
	if code, _, body := b.request(http.MethodGet, "/metrics", ""); code != http.StatusOK || strings.Contains(body, "skerry_") {
		t.Errorf("without a running run: %d %s", code, body)
	}
	feed, name := b.live("x")
	measure(feed, nil)
	feed.SetNetwork(record.NetworkSecond{Mean: 20, Worst: 40, Unreachable: 1})
	feed.AddEvent(record.Event{ID: 2, Kind: "latency", State: record.EventBegun, Source: record.SourceUI})
	feed.EndTrial(record.Trial{ID: 1, State: record.TrialOK})
	code, _, body := b.request(http.MethodGet, "/metrics", "")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	labels := `run="` + name + `",`
	for _, want := range []string{
		`skerry_operations_total{outcome="ok",` + labels + `trial="1"} 120`,
		`skerry_operations_per_second{outcome="ok",` + labels + `trial="1"} 120`,
		`skerry_latency_seconds{clock="service",quantile="0.5",` + labels + `trial="1"} 0.0015`,
		`skerry_node_cpu_cores{node="@host",` + labels + `site="",trial="1"} 1.5`,
		`skerry_node_memory_bytes{node="a",` + labels + `site="s",trial="1"} 1.048576e+06`,
		`skerry_link_up{from="a",link="a~b",` + labels + `to="<img src=x onerror=alert(1)>\"'&",trial="1"} 1`,
		`skerry_network_rtt_seconds{of="worst",` + labels + `trial="1"} 0.04`,
		`skerry_events{kind="kill",` + labels + `source="experiment",state="active",trial="1"} 1`,
		`skerry_events{kind="latency",` + labels + `source="ui",state="begun",trial="1"} 1`,
		`skerry_trials_ended{` + labels + `state="ok",trial="1"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	for _, s := range allSeries {
		if !strings.Contains(body, "# TYPE "+s.fullName()+" ") && s.name != elapsed.name {
			t.Errorf("%s is never exported", s.fullName())
		}
	}
}

// The documentation lists every metric, and the Grafana dashboard uses only existing ones.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range allSeries {
		names = append(names, s.fullName())
		if !strings.Contains(string(page), "`"+s.fullName()+"`") {
			t.Errorf("docs/dashboard.md does not have %s", s.fullName())
		}
		for _, l := range s.labels {
			if !strings.Contains(string(page), "`"+l+"`") {
				t.Errorf("docs/dashboard.md does not have the label %s", l)
			}
		}
	}
	file, err := os.ReadFile("../../docs/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var grafana struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(file, &grafana); err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`skerry_[a-z_]+`)
	expressions := 0
	for _, p := range grafana.Panels {
		if p.Title == "" {
			t.Error("a panel without a title")
		}
		for _, target := range p.Targets {
			found := metric.FindAllString(target.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s asks for none of our metrics: %s", p.Title, target.Expr)
			}
			for _, name := range found {
				if expressions++; !slices.Contains(names, name) {
					t.Errorf("%s: there is no metric %s", p.Title, name)
				}
			}
		}
	}
	for _, name := range metric.FindAllString(string(file), -1) { // variables and annotations too
		if !slices.Contains(names, name) {
			t.Errorf("unknown metric %s", name)
		}
	}
	if expressions < 10 {
		t.Errorf("%d expressions", expressions)
	}
}
