package ca

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	var text bytes.Buffer
	w := watch{log: slog.New(slog.NewTextHandler(&text, nil))}
	end := created.Add(30 * 24 * time.Hour)
	day := 24 * time.Hour
	for _, step := range []struct {
		name    string
		now     time.Time
		expires time.Time
		err     error
		want    string // "" if no message is expected
	}{
		{"new", created, end, nil, ""},
		{"in the last days", end.Add(-13 * day), end, nil, "ends soon"},
		{"an hour later", end.Add(-13*day + time.Hour), end, nil, ""},
		{"a day later", end.Add(-12 * day), end, nil, "ends soon"},
		{"an invalid file", end.Add(-12 * day), end, errors.New("nonsense"), "no certificate to use"},
		{"the same invalid file", end.Add(-12 * day), end, errors.New("nonsense"), ""},
		{"after the end", end.Add(time.Minute), end, nil, "has expired"},
		{"a second later", end.Add(time.Minute + time.Second), end, nil, ""},
		{"renewed", end.Add(time.Hour), end.Add(30 * day), nil, "was renewed"},
		{"good again", end.Add(2 * time.Hour), end.Add(30 * day), nil, ""},
	} {
		text.Reset()
		w.report(step.now, step.expires, step.err)
		if got := text.String(); step.want == "" && got != "" || !strings.Contains(got, step.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: got log %q, want %q", step.name, got, step.want)
		}
	}
}
