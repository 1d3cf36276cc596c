package record

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Runs from before effects were recorded are read with the same effects.
func TestEffectsOfOldRuns(t *testing.T) {
	d := &Dir{Path: t.TempDir()}
	folder := filepath.Join(d.Path, trialsDir, "1")
	noError(t, os.MkdirAll(folder, 0o755))
	noError(t, os.WriteFile(filepath.Join(folder, eventsFile), []byte(`{"t":0,"kind":"drift","message":"a link changed"}
{"t":1,"kind":"leave","id":1,"message":"pune leaves"}
{"t":2,"kind":"storm","id":2,"effect":{"on":"links","makes":"down"},"message":"of a later version"}
`), 0o644))
	noError(t, os.WriteFile(filepath.Join(folder, trialFile), []byte(`{"id":1,"events":[{"name":"cut","kind":"partition"}]}`), 0o644))
	events, err := d.Events(1)
	noError(t, err)
	noError(t, d.readTrials())
	var got []*Effect
	for _, e := range events {
		got = append(got, e.Effect)
	}
	got = append(got, d.Summary.Trials[0].Events[0].Effect)
	want := []*Effect{nil, {On: OnNodes, Makes: Down, Settles: true, Member: Leaves}, {On: OnLinks, Makes: Down}, {On: OnLinks, Makes: Down}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
