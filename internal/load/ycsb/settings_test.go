package ycsb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettings(t *testing.T) {
	got, err := ParseSettings(Properties{})
	want := Settings{Threads: 1, StatusInterval: 10 * time.Second, Percentiles: []float64{50, 95, 99}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("defaults: %v %s", err, d)
	}
	got, err = ParseSettings(Properties{
		"threadcount": "16", "target": "1000", "maxexecutiontime": "30", "measurement.interval": "both",
		"hdrhistogram.percentiles": "50, 99.9", "status": "true", "status.interval": "1", "label": "x ",
		"hdrhistogram.fileoutput": "true", "hdrhistogram.output.path": "/tmp/out-",
	})
	want = Settings{
		Threads: 16, Target: 1000, MaxExecutionTime: 30 * time.Second, Interval: IntervalBoth, Percentiles: []float64{50, 99.9},
		Status: true, StatusInterval: time.Second, Label: "x ", HDR: true, HDRPath: "/tmp/out-",
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	for name, value := range map[string]string{
		"threadcount": "0", "target": "-1", "maxexecutiontime": "soon", "measurement.interval": "each",
		"hdrhistogram.percentiles": "50,101", "status.interval": "0", "hdrhistogram.fileoutput": "1",
	} {
		if _, err := ParseSettings(Properties{name: value}); !errors.Is(err, ErrWorkload) || !strings.Contains(err.Error(), "property "+name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}
