package tunnelbench

import (
	"errors"
	"strings"
	"testing"
)

func TestUnknownPart(t *testing.T) {
	if _, err := Run(t.Context(), Options{Only: []string{"mesh", "strem"}}); !errors.Is(err, ErrPart) {
		t.Errorf("error %v, want %v", err, ErrPart)
	}
}

func TestText(t *testing.T) {
	r := Result{
		Mesh:   &Mesh{Tunnels: 64, UpMS: 900, PlainMS: 300, ProcessBytes: 250e6},
		Stream: &Stream{LatencyMS: 10, BPS: 1.9e9, LinkBPS: 16e9, CPU: 1.25, EmulatorCPU: 0.2},
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for _, want := range []struct{ line, has string }{
		{"64 tunnels", "reached"}, {"memory", "250 MB"}, {"memory", "MISSED"}, {"one TCP stream", "1.90 Gbit/s"}, {"one TCP stream", "MISSED"}, {"CPU", "125 %"},
	} {
		found := false
		for _, l := range lines {
			found = found || strings.Contains(l, want.line) && strings.Contains(l, want.has)
		}
		if !found {
			t.Errorf("no line with %q and %q in\n%s", want.line, want.has, b.String())
		}
	}
}
