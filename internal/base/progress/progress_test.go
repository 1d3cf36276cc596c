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

func TestWriteRemovesLiveLine(t *testing.T) {
	var b strings.Builder
	r := New(&b, func() int { return 80 })
	r.Livef("at 1 s")
	if _, err := r.Write([]byte("level=WARN the clock jumped\n")); err != nil {
		t.Fatal(err)
	}
	r.Livef("at 2 s")
	if diff := cmp.Diff("\r\x1b[Kat 1 s\r\x1b[Klevel=WARN the clock jumped\n\r\x1b[Kat 2 s", b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPartsShareALine(t *testing.T) {
	var b strings.Builder
	r := New(&b, func() int { return 80 })
	one, two := r.Part(), r.Part()
	one.Livef("trial %d", 1)
	two.Livef("trial 2")
	two.Linef("stays")
	one.Done()
	two.Done()
	want := "\r\x1b[Ktrial 1\r\x1b[Ktrial 1 | trial 2\r\x1b[Kstays\n\r\x1b[Ktrial 2"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// The next operation of a reporter does not show the lines of parts that an earlier operation left.
func TestDoneRemovesParts(t *testing.T) {
	var b strings.Builder
	r := New(&b, func() int { return 80 })
	r.Part().Livef("removing the lab")
	r.Done()
	r.Part().Livef("trial 1")
	if diff := cmp.Diff("\r\x1b[Kremoving the lab\r\x1b[K\r\x1b[Ktrial 1", b.String()); diff != "" {
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
