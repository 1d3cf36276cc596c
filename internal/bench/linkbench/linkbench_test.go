package linkbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/link/userspace"
	"skerry/test/testkit"
)

func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"agent", "link"}) {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := userspace.Main(ctx, os.Stdin, os.Stdout, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func options(t testing.TB, parts ...string) Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Command: []string{exe, "agent", "link"}, Only: parts, Quick: true}
}

// TestChange runs the measurement whose result does not depend on how busy the machine is: nothing is lost.
func TestChange(t *testing.T) {
	c, err := newBench(t).measureChange(t.Context(), 120)
	if err != nil {
		t.Fatal(err)
	}
	if c.links != 28 || len(c.times) < 5 || c.sent == 0 {
		t.Fatalf("%+v, want many changes of 28 links and probes meanwhile", c)
	}
	if c.lost > 0 {
		t.Errorf("%d of %d packets were lost", c.lost, c.sent)
	}
}

func TestText(t *testing.T) {
	r := Result{RTT: []RTT{{Scale: 1, Beside: "busy"}}, Bandwidth: []Bandwidth{{Set: 1e6}}}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "beside busy") || !strings.Contains(text.String(), "bandwidth 1 Mbit/s") {
		t.Errorf("Text printed %q, %v", &text, err)
	}
}

func TestUnknownPart(t *testing.T) {
	_, err := Run(t.Context(), options(t, "rtt", "dance"))
	if !errors.Is(err, ErrPart) || !strings.Contains(err.Error(), "dance") {
		t.Errorf("Run = %v, want ErrPart that names it", err)
	}
}

func TestRunEndsWithContext(t *testing.T) {
	testkit.Need(t, testkit.Root)
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t, "rtt")
	o.Progress = func(string) { cancel() }
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want Canceled", err)
	}
}

func TestRTTErrors(t *testing.T) {
	const ms = time.Millisecond
	wires := []*benchLink{{ab: link.Quality{Latency: 10 * ms}, ba: link.Quality{Latency: 20 * ms, Bandwidth: 672_000}}}
	// 84 bytes take 1 ms at 672 kbit/s: 31 ms are right.
	results := []probe.RTTResult{
		{Samples: []time.Duration{31 * ms, 32 * ms}, Lost: 3},
		{Samples: []time.Duration{30 * ms, 31 * ms}},
	}
	r := RTT{Beside: "tcp"}
	r.setErrors(wires, results)
	if r.Pairs != 2 || r.Samples != 4 || r.Lost != 3 || r.ErrorMean != 0.5 || r.ErrorMax != 1 {
		t.Errorf("all pairs: %+v", r)
	}
	if s := r.SameLink; s == nil || s.Samples != 2 || s.ErrorMean != 0.5 {
		t.Errorf("the stream's link: %+v", s)
	}
}

func TestSparseErrors(t *testing.T) {
	const ms = time.Millisecond
	wires := []*benchLink{{ab: link.Quality{Latency: 10 * ms}, ba: link.Quality{Latency: 10 * ms}}}
	var s sparse
	s.setErrors(wires, []time.Duration{1 * ms, 3 * ms}, [][]time.Duration{{22 * ms, 26 * ms}})
	want := sparse{
		samples: 2, vethMean: 2, vethMax: 3, extraMean: 2, worstPair: 2, extraP99: 4, extraMax: 4,
		worstAbove: 3, // 6 ms above the setting, less the 3 ms of the plain pair
	}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

func TestSummarise(t *testing.T) {
	var samples []time.Duration
	for i := range 200 {
		samples = append(samples, time.Duration(199-i))
	}
	if got, want := summarise(samples), (spread{99, 197, 199}); got != want {
		t.Errorf("summarise = %+v, want %+v", got, want)
	}
	if got := summarise(nil); got != (spread{}) {
		t.Errorf("summarise of no results = %+v", got)
	}
}
