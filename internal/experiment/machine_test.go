package experiment

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Features that a machine lacks are noted if the file uses them.
func TestDiskLimitNotes(t *testing.T) {
	missing := errors.New("no such controller")
	for name, tt := range map[string]struct {
		sets []string
		why  error
		want []string
	}{
		"nothing asked": {nil, missing, nil},
		"a flavor": {[]string{"topology={from: azure8, defaults: {flavor: {disk: {write: 50MB}}}}"}, missing,
			[]string{"disk limits of flavors are not enforced on this machine: no such controller"}},
		"an event": {[]string{"events=[{at: 1s, disk_slow: {nodes: Pune, write: 1MiB}}]"}, missing,
			[]string{"event disk_slow will fail on this machine: no such controller"}},
		"a machine with the feature": {[]string{"events=[{at: 1s, disk_slow: {nodes: Pune, write: 1MiB}}]"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := Validate("../../experiments/quickstart.yaml", tt.sets, true, databases())
			if !v.Valid {
				t.Fatal(v.Err())
			}
			v.NoteDiskLimits(func() error { return tt.why })
			if strings.Join(v.Notes, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("notes %q, want %q", v.Notes, tt.want)
			}
			var b bytes.Buffer
			if err := v.Describe(&b, false); err != nil {
				t.Fatal(err)
			}
			for _, n := range tt.want {
				if !strings.Contains(b.String(), "note: "+n) {
					t.Errorf("the description lacks %q:\n%s", n, b.String())
				}
			}
		})
	}
}

func TestCongestionControlNotes(t *testing.T) {
	e := parse(t, small+`
matrix: {topology.defaults.tcp.congestion_control: [cubic, cubix]}
repetitions: 2
`)
	v := Validation{Valid: true, Plan: e.Plan(), experiment: e}
	v.NoteCongestionControls([]string{"reno", "cubic"})
	if len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "cubix is not loaded on this machine (reno, cubic)") {
		t.Errorf("%q", v.Notes)
	}
}
