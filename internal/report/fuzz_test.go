package report

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"skerry/internal/record"
)

// Any run directory that can be opened can be shown.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"schema":"skerry/run/v1","name":"x","plan":[{"id":1,"parameters":{"scale":0.2,"workload":"a"}},{"id":2,"parameters":{"scale":1}}]}`),
		[]byte(`{"schema":"skerry/summary/v1","trials":[{"id":1,"state":"ok","goodput_ops_s":1e300,"parameters":{"scale":0.2},
"operations":{"READ":{"count":3,"response_us":{"p50":-1,"max":1e18}}},"traffic":{"pairs":[{"from":"a","to":"a","bytes":-5}]},
"fidelity":{"links":[{"answered":true,"set_ab_bps":1,"ab_bps":9e18}]},"verdict":{"state":"valid"}},{"id":2,"state":"ok"}]}`))
	f.Add([]byte(`{"schema":"skerry/run/v1"}`), []byte(`{"schema":"skerry/summary/v1","trials":[{"id":-1,"state":"?","parameters":{"":null,"a":[1,{"b":2}]}}]}`))
	f.Fuzz(func(t *testing.T, run, summary []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "run.json"), run, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "summary.json"), summary, 0o600))
		d, err := record.Open(dir)
		if err != nil {
			return
		}
		NewFigures(d)
		must(t, Text(io.Discard, d, TextOptions{Width: 70}))
		must(t, Text(io.Discard, d, TextOptions{Trials: true}))
	})
}
