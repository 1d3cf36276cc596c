package metadata_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
)

func TestStepRoundTrip(t *testing.T) {
	s := metadata.Step{
		Verb: metadata.Prepare, Txn: "18ea-5f", Coordinator: "g1", Lease: 5e9, First: true, Servers: []string{"g2", "g3"},
		Commands: []metadata.Command{{Op: metadata.Move, Path: "/a", To: "/b", Across: true, MaxDepth: -1}},
	}
	got, err := metadata.ParseStep(s.Command("/a", "/b").Data)
	if diff := cmp.Diff(s, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}

func FuzzParseStep(f *testing.F) {
	f.Add(metadata.Step{Verb: metadata.Commit, Txn: "x", Servers: []string{"g2"}}.Command("/", "").Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := metadata.ParseStep(b)
		if err != nil {
			return
		}
		again, err := metadata.ParseStep(s.Command("/", "").Data)
		if diff := cmp.Diff(s, again); err != nil || diff != "" {
			t.Fatalf("%v: %s", err, diff)
		}
	})
}

func TestParseSubtree(t *testing.T) {
	for owner, want := range map[string]metadata.Subtree{
		"g2:/.subtrees/5f": {Server: "g2", ID: "5f"}, "g2:/.subtrees/5f.3": {Server: "g2", ID: "5f", Epoch: 3},
		"g2": {}, "g2:/a": {}, "g2:/.subtrees/5f/x": {}, "g2:/.subtrees/5f.x": {}, "g2:/.subtrees/5f.0": {}, ":/.subtrees/5f": {},
		"g2:/.subtrees/": {},
	} {
		s, ok := metadata.ParseSubtree(owner)
		if ok != (want.ID != "") || ok && (s != want || s.Owner() != owner) {
			t.Errorf("%s: %+v, %t", owner, s, ok)
		}
	}
	if s, _ := metadata.ParseSubtree("g2:/.subtrees/5f"); s.NextEpoch().Owner() != "g2:/.subtrees/5f.1" {
		t.Errorf("the next epoch: %+v", s.NextEpoch())
	}
}

// TestStepEncoding pins the encoding, which logs of earlier versions contain.
func TestStepEncoding(t *testing.T) {
	move := metadata.Command{Op: metadata.Move, Path: "/a", To: "/b", Owner: "g2", Data: []byte("x"), Mode: 0o755, Time: 1,
		Across: true, MaxDepth: -1}
	s := metadata.Step{Verb: metadata.Commit, Txn: "18ea-5f", Coordinator: "g1", Lease: 5e9, First: true,
		Servers: []string{"g2", "g3"}, Commands: []metadata.Command{move}}
	want := "\x02\x01\x80\xe4\x97\xd0\x12\a18ea-5f\x02g1\x02\x02g2\x02g3" +
		"\x18\x01\t\x10\xed\x01\x01\x00\x00\x00\x00\x00\x00\x00\x02/a\x02/b\x02g2\x01x"
	got := s.Command("/a", "/b").Data
	if string(got) != want {
		t.Errorf("encoded as %q, want %q", got, want)
	}
	if back, err := metadata.ParseStep([]byte(want)); err != nil || cmp.Diff(s, back) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(s, back))
	}
}
