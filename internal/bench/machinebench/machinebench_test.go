package machinebench

import (
	"errors"
	"strings"
	"testing"
)

func TestUnknownPart(t *testing.T) {
	if _, err := Run(t.Context(), Options{Only: []string{"rtt", "strem"}}); !errors.Is(err, ErrPart) {
		t.Errorf("error %v, want %v", err, ErrPart)
	}
}

// Each figure is told beside what is to be reached, and whether it is.
func TestText(t *testing.T) {
	r := Result{
		Cores: 2,
		RTT: []RTT{
			{Beside: "nothing", Between: "plain", One: Errors{Mean: .05, P99: .1}, Two: Errors{Mean: .12, P99: .3}},
			{Beside: "busy", Between: "plain", One: Errors{Mean: .05, P99: .1}, Two: Errors{Mean: .12, P99: .5}},
		},
		Stream:  []Stream{{Between: "one machine", BPS: 9e9}, {Between: "plain", BPS: 6e9, ReachBPS: 5e9}, {Between: "encrypted", BPS: 1e9, ReachBPS: 1.5e9}},
		Labs:    []Lab{{Topology: "azure8", Machines: 8, UpMS: 900, DownMS: 3100, GoalMS: 3000}, {Topology: "ring:256", UpMS: 9000}},
		Traffic: &Traffic{Topology: "azure8", Machines: 8, Database: "redis", Core: .5, ToBPS: 1e3, FromBPS: 1e5, ReachCore: 1, ReachBPS: 1e5},
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for of, said := range map[string]string{
		"plain, beside nothing": "reached", "plain, beside busy": "missed", "at 0 ms, plain": "reached", "at 0 ms, encrypted": "missed",
		"azure8": "missed", "one machine": "", "ring:256": "",
		"controller while": "missed",
	} {
		found := false
		for _, l := range lines {
			if strings.Contains(l, of) {
				found = strings.HasSuffix(strings.TrimSpace(l), said) && (said != "" || !strings.Contains(l, "missed"))
			}
			if found {
				break
			}
		}
		if !found {
			t.Errorf("%s is not told as %q in\n%s", of, said, b.String())
		}
	}
}
