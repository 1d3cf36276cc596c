package experiment

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
)

// resizable is a database that can be resized, except for its first node.
type resizable struct{ fake }

func (resizable) Fixed(nodes []string, _ database.Options) map[string]string {
	return map[string]string{nodes[0]: "it is the seed"}
}

// anchored is a database whose nodes cannot leave.
type anchored struct{ resizable }

func (anchored) Fixed(nodes []string, _ database.Options) map[string]string {
	fixed := map[string]string{}
	for _, n := range nodes {
		fixed[n] = "it holds the only copy"
	}
	return fixed
}

// frail is a database without replication.
type frail struct{ fake }

func (frail) Frail(int, database.Options) string { return "it takes its records with it" }

func TestUnsupportedEvents(t *testing.T) {
	known := map[string]database.Database{
		"still":   fake{can: database.Capabilities{MinNodes: 1}},
		"elastic": resizable{fake{can: database.Capabilities{MinNodes: 2, MaxNodes: 4, Resize: true, Restart: true}}},
	}
	known["lossless"] = fake{can: database.Capabilities{MinNodes: 1, Resize: true, LeaveAbrupt: true}}
	known["frail"] = frail{known["lossless"].(fake)}
	known["anchored"] = anchored{known["elastic"].(resizable)}
	const anywhere = "name: x\ntopology: mesh:5\nworkload: a\n"
	tests := map[string]struct{ database, events, want string }{
		"leave":           {"elastic", "{at: 1s, leave: n2}", ""},
		"removable nodes": {"elastic", "{at: 1s, gap: 1s, for: 1s, leave: {nodes: removable, choose: next}}", ""},
		"one after the other, permanently": {"elastic", "{at: 1s, every: 1s, leave: {nodes: [n2, n3], choose: next}}",
			"events[0].leave.nodes: elastic needs at least 2 nodes: 1 of 3 would remain"},
		"one lost node": {"lossless", "{at: 1s, leave: {nodes: n2, manner: abrupt}}", ""},
		"no procedure for lost nodes": {"elastic", "{at: 1s, leave: {nodes: n2, manner: abrupt}}",
			"events[0].leave.manner: elastic has no procedure for lost members"},
		"no replication": {"frail", "{at: 1s, leave: {nodes: n2, manner: abrupt}}",
			"events[0].leave.manner: no node can leave abruptly: it takes its records with it"},
		"the seed": {"elastic", "{at: 1s, leave: [n2, n1]}", "events[0].leave.nodes: n1 cannot leave: it is the seed"},
		"nobody can": {"anchored", "{at: 1s, leave: removable}",
			"events[0].leave.nodes: none of the 3 nodes can leave: it holds the only copy"},
		"too many": {"elastic", "{at: 1s, leave: [n2, n3]}",
			"events[0].leave.nodes: elastic needs at least 2 nodes: 1 of 3 would remain"},
		"with one more node": {"elastic", "{at: 1s, leave: [n2, n3]}, {at: 0s, join: n4}", ""},
		"join":               {"elastic", "{at: 1s, join: spare}", "events[0].join.nodes: elastic supports at most 4 nodes"},
		"joining a member": {"elastic", "{at: 1s, join: n2}",
			"events[0].join.nodes: n2 is a member from the start, and no event removes it"},
		"return":           {"elastic", "{at: 1s, leave: n2}, {when: completed, join: n2}", ""},
		"no removal":       {"still", "{at: 1s, leave: n2}", "events[0].leave: still cannot remove members while it serves"},
		"no addition":      {"still", "{at: 1s, join: n4}", "events[0].join: still cannot add members while it serves"},
		"down permanently": {"still", "{at: 1s, kill: n2}", ""},
		"down and up": {"still", "{at: 1s, for: 1s, kill: n2}",
			"events[0].kill: still cannot restart a stopped member on its data"},
		"no restart": {"still", "{at: 1s, restart: n2}",
			"events[0].restart: still cannot restart a stopped member on its data"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := parse(t, anywhere+"database: {name: "+tt.database+", count: 3}\nevents: ["+tt.events+"]\n")
			err := CheckCapabilities(e, known)
			got := ""
			var ps interface{ Unwrap() []error }
			if errors.As(err, &ps) {
				_, got, _ = strings.Cut(ps.Unwrap()[0].Error(), ": ") // without its position
				got, _, _ = strings.Cut(got, ";")
			}
			if got != tt.want {
				t.Errorf("%q, want %q (%v)", got, tt.want, err)
			}
		})
	}
}

// A joining node needs links to all others, like the first ones.
func TestJoiningNodesNeedLinks(t *testing.T) {
	text := "name: x\nworkload: a\ndatabase: {name: redis, nodes: [a, b]}\nevents: [{at: 1s, join: c}]\n" +
		"topology: {sites: [a, b, c], connect: none, links: [{between: [a, b], latency: 1ms}, {between: [b, c], latency: 1ms}]}\nclient: b\n"
	_, err := Parse("x.yaml", []byte(text), nil, false)
	if err == nil || !strings.Contains(err.Error(), "no link between a and c") {
		t.Errorf("error %v, want one about the link between a and c", err)
	}
}

func TestEventsInJSON(t *testing.T) {
	e := parse(t, small+`
events:
  - {name: far, at: 5s, for: 5s, latency: {between: [n1, n2], scale: 2.5}}
  - {when: reverted, after: 1s, kill: n3}
  - {churn: {every: 20s, lasting: 5s}, partition: {split: 2}}
  - {at: 2s, network_load: {from: n1, to: [n2, n3], rate: unlimited}}
`)
	first, err := e.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.json", first, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.JSON()
	if diff := cmp.Diff(string(first), string(second)); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if got, want := e.describeEvents(), "latency (far), kill, partition, network_load"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s := e.EventLayout(nil); !slices.Equal(s.Data, e.DataNodes()) || !slices.Equal(s.Clients, []string{"client"}) {
		t.Errorf("stage: data %v, client %s", s.Data, s.Clients)
	}
}

// An axis of lists of events has their names as values.
func TestAxisOfEvents(t *testing.T) {
	e := parse(t, small+"matrix: {events: [[], [{name: shrink, at: 1s, leave: n1}, {name: grow, at: 9s, join: n1}]]}\n")
	got := map[any]int{}
	for _, c := range e.Plan() {
		got[c.Parameters["events"]] = len(c.Experiment.Events)
	}
	if diff := cmp.Diff(map[any]int{"none": 0, "shrink,grow": 2}, got); diff != "" {
		t.Error(diff)
	}
}
