package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTerminalRewritesItsLine(t *testing.T) {
	var b strings.Builder
	r := New(&b, func() int { return 8 })
	r.Livef("a live line")
	r.Livef("short")
	r.Linef("stays")
	r.Done()
	want := "\r\x1b[Ka live…\r\x1b[Kshort\r\x1b[Kstays\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPlainLinesAreSpaced(t *testing.T) {
	var b strings.Builder
	r := New(&b, nil)
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	r.Linef("trial 1")
	for range 25 {
		now = now.Add(time.Second)
		r.Livef("at %d s", now.Unix())
	}
	want := "trial 1\nat 10 s\nat 20 s\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
