package database

import (
	"fmt"
	"testing"
)

func TestFieldNames(t *testing.T) {
	var n FieldNames
	for _, record := range [][]string{{"a", "b"}, {"a", "b"}, {"b"}, {"a", "b", "c"}} {
		for i, name := range record {
			if got := n.String(i, []byte(name)); got != name {
				t.Errorf("%q, want %q", got, name)
			}
		}
	}
	text := []byte("field0")
	n.String(0, text)
	if allocs := testing.AllocsPerRun(100, func() { n.String(0, text) }); allocs > 0 {
		t.Errorf("%v allocations for the name of the previous record", allocs)
	}
	for i := range 2 * maxFieldNames {
		n.String(i, fmt.Append(nil, i))
	}
	if len(n.names) != maxFieldNames {
		t.Errorf("%d cached names, want %d", len(n.names), maxFieldNames)
	}
}
