package uibench

import (
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	r, err := Run(t.Context(), Options{Nodes: 4, Browsers: 2, Time: 1200 * time.Millisecond, Scrape: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Links != 6 || r.HearMedianMS < 0 {
		t.Errorf("%+v", r)
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "4 nodes, 6 links") {
		t.Errorf("%v: %s", err, b.String())
	}
}
