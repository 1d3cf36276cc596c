package metabench

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skerry/internal/install"
	"skerry/internal/system/metadata/journal"
	"skerry/internal/system/metadata/server"
	"skerry/internal/system/metadata/treestore"
)

func TestRun(t *testing.T) {
	r, err := Run(context.Background(), Options{
		Clients: 4, Duration: 50 * time.Millisecond, Memory: 20_000, Only: []string{"local", "memory", "locks"}, Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Local.Mkdir <= 0 || r.Local.Stat <= 0 || r.Memory.PerDir <= 0 || len(r.Locks) == 0 || r.Locks[0].ChainBeside <= 0 {
		t.Errorf("measured %+v", r)
	}
	r.HDFS = &HDFS{LocalMkdirs: r.Local.Mkdir, LocalStatus: r.Local.Stat / 4}
	r.Takeover = Takeover{Seconds: []float64{0.4, 3.5, 0.2}, Acknowledged: 1000, Lost: 1}
	r.Cores = 2
	r.Hot = Hot{
		Creations: []Creations{
			{Servers: 1, Creates: 1000, ServersBusy: 1.5, ClientsBusy: 0.45}, {Servers: 1, Share: 0.2, Creates: 500, ServersBusy: 0.2},
			{Servers: 3, Share: 0.2, Creates: 1400, ServersBusy: 0.59, ClientsBusy: 0.2}, {Servers: 3, Creates: 1, ServersBusy: 0.4},
		},
		Filled: &Filled{Servers: 3, Entries: 1_500_000, Steps: []Step{{1_000_000, 4, 300_000_000}, {1_500_000, 2, 450_000_000}}, Pages: 150, ListSeconds: 9, LongestPage: 0.25},
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1.0 x", "missed", "4.0 x", "reached", "threads", "3.50 s, the longest of 3", "1 of 1000", "the machine's 2 processors", "2.80 x", "the servers' processors", "waiting", "250000", "300 bytes", "250 ms"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if _, err := Run(context.Background(), Options{Only: []string{"nothing"}}); !errors.Is(err, ErrPart) {
		t.Errorf("error %v", err)
	}
}

// TestThin has the benchmark's client talk to the server as other clients do.
func TestThin(t *testing.T) {
	state := treestore.NewState()
	j, _, err := journal.Open(t.TempDir(), state, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	h := httptest.NewServer(server.New(treestore.New(state, j), server.Options{}))
	defer h.Close()
	n, err := closedLoop(context.Background(), h.Listener.Addr().String(), 3, 50*time.Millisecond, func(b []byte, _, _ int) []byte { return append(b, "ls /"...) })
	if err != nil || n <= 0 {
		t.Errorf("%g/s, %v", n, err)
	}
	_, err = closedLoop(context.Background(), h.Listener.Addr().String(), 1, time.Second, func(b []byte, _, _ int) []byte { return append(b, "ls /x"...) })
	if !errors.Is(err, errStatus) || !strings.Contains(err.Error(), "/x: no such file") {
		t.Errorf("error %v", err)
	}
}

func TestLock(t *testing.T) {
	jars, err := install.ParseLock(hdfsLock)
	if err != nil || jars[0].Artifact != "hadoop-hdfs" {
		t.Errorf("%v, %v", jars[:1], err)
	}
}
