package event

import (
	"context"
	"strings"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// Each of several links between two nodes can be taken down and up alone; a change that is
// over leaves what another event did to one of them.
func TestParallelLinks(t *testing.T) {
	s := stage()
	s.Topology.Links = []topology.Link{{ID: "oslo~bergen#1", A: "oslo", B: "bergen"}, {ID: "spare", A: "oslo", B: "bergen"}}
	e := &engine{now: map[direction]link.Quality{}}
	w := &Testbed{Links: NewLinkLayers(s.Topology.Links, e)}
	apply := func(text string) action {
		t.Helper()
		a := read(t, "- {at: 0s, "+text+"}")[0].Spec.spec.draw(s, 0, nil, nil)
		if err := a.apply(context.Background(), w, new(progress)); err != nil {
			t.Fatal(err)
		}
		return a
	}
	check := func(after string, first, spare bool) {
		t.Helper()
		if got := [2]bool{e.now[direction{"oslo~bergen#1", false}].Down, e.now[direction{"spare", true}].Down}; got != [2]bool{first, spare} {
			t.Errorf("after %s: oslo~bergen#1 down %v, spare down %v, want %v and %v", after, got[0], got[1], first, spare)
		}
	}
	apply("link_down: {ids: [spare]}")
	check("link_down of one", false, true)
	both := apply("link_down: {between: [oslo, bergen]}")
	check("link_down of both", true, true)
	if err := both.revert(context.Background(), w, new(progress)); err != nil {
		t.Fatal(err)
	}
	check("its end", false, true)
	apply("link_up: {ids: ['oslo~bergen#1']}")
	check("link_up of the other", false, true)
	apply("link_up: {of: ['bergen~oslo#spare']}")
	check("link_up of that one", false, false)

	pair, err := Parse([]byte(`{link_down: {ids: ["oslo~bergen"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = CheckFired(pair, s, "double", database.Capabilities{})
	if want := "links between the two are oslo~bergen#1, spare; of: oslo~bergen means all of them"; !strings.Contains(advice.Of(err), want) {
		t.Errorf("error %v (%s) does not say %q", err, advice.Of(err), want)
	}
}
