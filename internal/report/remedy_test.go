package report

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

// What to change is told by what made most trials suspect, where it is a matter of the machine.
func TestCommonRemedy(t *testing.T) {
	for name, tt := range map[string]struct {
		kinds [][]string // of the trials
		want  string     // the beginning
	}{
		"late twice, full once": {[][]string{{"driver-late", "emulator-late"}, {"steal"}, {"host-cpu"}}, "its processors came too late"},
		"full":                  {[][]string{{"host-cpu"}, {"driver-cpu", "driver-late"}}, "its processors were full"},
		"the database's":        {[][]string{{"event-failed"}, {"audit"}}, ""},
		"not told":              {[][]string{{}}, ""},
	} {
		m := &model{dir: &record.Dir{}}
		for _, k := range tt.kinds {
			m.dir.Summary.Trials = append(m.dir.Summary.Trials, record.Trial{Verdict: record.Verdict{State: record.Suspect, Kinds: k}})
		}
		if got := m.commonRemedy(); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
