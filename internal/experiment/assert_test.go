package experiment

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/base/strict"
)

const asserting = `name: x
topology: pair
database: redis
workload: c
audit: false
assert:
  - read.p95 < 300ms
`

func TestAssertionPositions(t *testing.T) {
	for line, want := range map[string]struct {
		column int
		word   string
	}{
		"read.p95 < 300":         {16, "no unit"},
		`"read.p95 < 300"`:       {17, "no unit"},
		"reed.p95 < 300ms":       {5, "no such metric"},
		"lost_writes == 0":       {5, "audit"},
		"update.p95 < 3ms":       {5, "has no operation update"},
		"availability >> 99.9%":  {19, "share"},
		"availability of 99.9 %": {27, "no comparison operator"},

		"events.leave.recover < 60s": {5, "unknown event"},
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(asserting, "read.p95 < 300ms", line, 1)), nil, false)
		var ps strict.Problems
		if !errors.As(err, &ps) || len(ps) != 1 || ps[0].Pos.Line != 7 || ps[0].Pos.Column != want.column ||
			!strings.Contains(ps[0].Message, want.word) {
			t.Errorf("%s: want column %d and %q:\n%v", line, want.column, want.word, err)
		}
	}
	if e, err := Parse("x.yaml", []byte(asserting), []string{"audit=true", "workload=a"}, false); err != nil || !e.Audit.Enabled ||
		e.Audit.HistoryKeys != 8 {
		t.Errorf("%+v, %v", e.Audit, err)
	}
}

func TestAuditNeedsLongValues(t *testing.T) {
	for name, c := range map[string]struct {
		set  string
		word string
	}{
		"short values":   {"workload.properties.fieldlength=8", "8 bytes are too short"},
		"perhaps short":  {"workload.properties.fieldlengthdistribution=uniform", "1 bytes are too short"},
		"data integrity": {"workload.properties.dataintegrity=true", "dataintegrity"},
	} {
		_, err := Parse("x.yaml", []byte(asserting), []string{"audit=true", c.set}, false)
		if err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
