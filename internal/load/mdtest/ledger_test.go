package mdtest

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/audit"
)

func TestLedger(t *testing.T) {
	a, b := NewTreeLedger(), NewTreeLedger()
	op := func(k Kind, name, to string) Op { return Op{Kind: k, Area: 1, Dir: "d", Name: name, To: to} }
	for _, s := range []struct {
		op Op
		o  audit.Outcome
	}{
		{op(Create, "kept", ""), audit.Acknowledged}, {op(Create, "moved", ""), audit.Acknowledged},
		{op(Create, "removed", ""), audit.Acknowledged}, {op(Create, "doubted", ""), audit.InDoubt},
		{op(Create, "refused", ""), audit.Refused}, {op(Rename, "moved", "there"), audit.Acknowledged},
		{op(Remove, "removed", ""), audit.Acknowledged}, {op(Remove, "kept", ""), audit.Refused},
		{op(Create, "lost", ""), audit.Acknowledged}, {op(Rename, "lost", "somewhere"), audit.InDoubt},
	} {
		a.Begin(s.op)(s.o)
	}
	b.Begin(Op{Kind: Mkdir, Shared: true, Name: "made"})(audit.Acknowledged)
	b.Begin(op(Create, "under way", ""))
	var file bytes.Buffer
	counts, err := SaveClaims(&file, []*TreeLedger{a, b})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"/own/1/d/kept": true, "/own/1/d/there": true, "/own/1/d/moved": false, "/own/1/d/removed": false,
		"/shared/0/made": true}
	got := make(map[string]bool)
	read, err := ReadClaims(&file, func(c Claim) error {
		got[c.String()] = c.There
		return nil
	})
	if err != nil || read != counts || counts != (audit.Counts{Acknowledged: 7, InDoubt: 3, Refused: 2}) {
		t.Errorf("counts %+v, read %+v, %v", counts, read, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
