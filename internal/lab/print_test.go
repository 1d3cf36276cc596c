package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
	"skerry/internal/topology"
)

var now = time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC)

func example() Info {
	q := link.Quality{Latency: 40 * time.Millisecond, Bandwidth: 1e8, Loss: 0.01}
	slow := q
	slow.Latency, slow.Jitter, slow.Bandwidth = 60*time.Millisecond, time.Millisecond, 0
	return Info{
		Name: "two", State: StateUp, Created: now.Add(-90 * time.Second), Engine: "userspace",
		Why: "the kernel has no sch_netem", Factor: 2, Topology: "pair", Warnings: []string{"no real time"},
		Nodes: []NodeInfo{{Name: "Pune", Addr: "10.77.0.1", Netns: "skerry-two-Pune"},
			{Name: "Sydney", Addr: "10.77.0.2", Netns: "skerry-two-Sydney"}},
		Links: []Link{
			{ID: "Pune~Sydney", A: "Pune", B: "Sydney", Device: "lk0", AB: q, BA: q},
			{ID: "spare", A: "Sydney", B: "Pune", Device: "lk1", AB: q, BA: slow},
		},
	}
}

func TestPrintStatus(t *testing.T) {
	var b strings.Builder
	if err := PrintStatus(&b, []Info{example(), {Name: "old", State: StateDead, Problem: "left over"}}, now); err != nil {
		t.Fatal(err)
	}
	want := `LAB  STATE  NODES  LINKS  SCALE  ENGINE     PROCESSES  AGE
two  up     2      2      2      userspace  0          1m30s
old  dead   0      0      0      -          0          -

two: topology pair, userspace links: the kernel has no sch_netem
  warning: no real time
  Pune    10.77.0.1  skerry-two-Pune
  Sydney  10.77.0.2  skerry-two-Sydney

old: topology unknown
  dead: left over
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPrintLinks(t *testing.T) {
	var b strings.Builder
	if err := PrintLinks(&b, example()); err != nil {
		t.Fatal(err)
	}
	want := `LINK         ENDS            DEVICE  ONE WAY  RTT    BANDWIDTH  LOSS  OTHER
Pune~Sydney  Pune <> Sydney  lk0     40ms     80ms   100mbit    1%    -
spare        Sydney > Pune   lk1     40ms     100ms  100mbit    1%    -
spare        Pune > Sydney   lk1     60ms     100ms  unlimited  1%    jitter=1ms
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// A planned link shows both directions if they differ, and omits unlimited values.
func TestPrintPlannedLinks(t *testing.T) {
	slow := link.Quality{Latency: 5 * time.Millisecond, Bandwidth: 5e6}
	var b strings.Builder
	err := PrintPlannedLinks(&b, []topology.Link{{ID: "a~b", A: "a", B: "b", AB: link.Quality{Latency: 5 * time.Millisecond}, BA: slow}})
	if err != nil {
		t.Fatal(err)
	}
	want := `LINK  ENDS   ONE WAY  RTT   BANDWIDTH  LOSS  OTHER
a~b   a > b  5ms      10ms  unlimited  0%    -
a~b   b > a  5ms      10ms  5mbit      0%    -
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPrintDOT(t *testing.T) {
	var b strings.Builder
	if err := PrintDOT(&b, example()); err != nil {
		t.Fatal(err)
	}
	want := `graph "two" {
  node [shape=box];
  "Pune" [tooltip="10.77.0.1"];
  "Sydney" [tooltip="10.77.0.2"];
  "Pune" -- "Sydney" [label="80ms\n100mbit", len=1.60];
  "Sydney" -- "Pune" [label="spare\n100ms\n100mbit > \n< unlimited", len=2.00];
}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
