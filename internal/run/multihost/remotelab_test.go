package multihost

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/machine/inventory"
)

// The record of a lab on other machines is stored until it is removed.
func TestLabStore(t *testing.T) {
	m := OpenLabStore(t.TempDir())
	want := []RemoteLab{
		{
			Name: "far", At: map[string]string{"a": "m1"},
			Machines: inventory.File{Machines: []inventory.Entry{{
				Name: "m1", Cores: 2, Memory: 4 << 30, SSH: &inventory.SSH{Host: "h", Options: []string{"A=b"}},
			}}},
		},
		{
			Name: "near", At: map[string]string{"b": "m2"},
			Machines: inventory.File{Machines: []inventory.Entry{{Name: "m2", Command: []string{"x", "y"}}}},
		},
	}
	for _, s := range []RemoteLab{want[1], want[0]} {
		if err := m.Save(s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.List()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(inventory.Entry{})); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, s := range want {
		if err := m.Remove(s.Name); err != nil {
			t.Error(err)
		}
	}
	if got, err := m.List(); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// A lost machine may be excluded unless an experiment places a node on it.
func TestIsOptional(t *testing.T) {
	for name, c := range map[string]struct {
		m     inventory.Entry
		rules map[string]string
		want  bool
	}{
		"any":                     {inventory.Entry{Name: "a"}, map[string]string{"*": "spread"}, true},
		"named in the experiment": {inventory.Entry{Name: "a"}, map[string]string{"Pune": "a"}, false},
		"for a site":              {inventory.Entry{Name: "a", Site: "Pune"}, nil, false},
	} {
		if got := isOptional(c.m, c.rules); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
