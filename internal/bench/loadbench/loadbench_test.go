package loadbench

import (
	"bytes"
	"strings"
	"testing"
)

func TestQuick(t *testing.T) {
	r, err := Run(t.Context(), Options{Quick: true, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Null {
		if n.PerCPUSecond <= 0 || len(n.Runs) != nullRuns || n.Operations == 0 {
			t.Errorf("%+v", n)
		}
	}
	var b bytes.Buffer
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "null database") {
		t.Errorf("%v: %s", err, b.String())
	}
}
