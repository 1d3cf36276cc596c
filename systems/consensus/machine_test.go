package consensus

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// schedules returns the number of schedules that TestSimulation runs: SKERRY_SCHEDULES, or a small default.
// The default is smaller with the race detector, which finds nothing in a single goroutine.
func schedules(t *testing.T) uint64 {
	v := os.Getenv("SKERRY_SCHEDULES")
	if v == "" && raceDetector {
		return 60
	}
	if v == "" {
		return 300
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("SKERRY_SCHEDULES: %v", err)
	}
	return n
}

// simOptionsOf derives the kind of schedule from the seed.
func simOptionsOf(seed uint64) simOptions {
	return simOptions{
		members:  []int{3, 3, 5, 1, 2}[seed%5],
		duration: 2 * time.Second,
		loss:     []float64{0, 0.05, 0.2}[seed%3],
		delay:    []time.Duration{2, 10, 40}[seed/3%3] * time.Millisecond,
		compact:  seed%2 == 0,
		full:     seed%4 == 1,
		change:   seed%3 == 2,
	}
}

// TestSimulation runs seeded fault schedules. SKERRY_SEED runs a single one and prints its log.
func TestSimulation(t *testing.T) {
	if v := os.Getenv("SKERRY_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
		if found, _, _ := simulate(seed, simOptionsOf(seed), logger); found != "" {
			t.Fatalf("seed %d: %s", seed, found)
		}
		return
	}
	var sum simStats
	for seed := range schedules(t) {
		found, _, st := simulate(seed, simOptionsOf(seed), slog.New(slog.DiscardHandler))
		if found != "" {
			t.Fatalf("seed %d: %s\nSKERRY_SEED=%d runs it with its log", seed, found, seed)
		}
		sum.acked += st.acked
		sum.notDone += st.notDone
		sum.inDoubt += st.inDoubt
		sum.reads += st.reads
		sum.snapshots += st.snapshots
		sum.crashes += st.crashes
		sum.leaders += st.leaders
		sum.changes += st.changes
	}
	t.Logf("%+v", sum)
	if sum.acked == 0 || sum.inDoubt == 0 || sum.notDone == 0 || sum.reads == 0 || sum.snapshots == 0 || sum.changes == 0 {
		t.Errorf("some kinds of events never occurred: %+v", sum)
	}
}

// TestSimulationRepeats checks that a seed determines the schedule.
func TestSimulationRepeats(t *testing.T) {
	for seed := range uint64(5) {
		_, a, _ := simulate(seed, simOptionsOf(seed), slog.New(slog.DiscardHandler))
		_, b, _ := simulate(seed, simOptionsOf(seed), slog.New(slog.DiscardHandler))
		if a != b {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// TestLyingDisk checks that the simulation detects disks that report syncs they did not do: logs lose
// their beginning or acknowledged entries, and members disagree.
func TestLyingDisk(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(60) {
		opt := simOptionsOf(seed)
		opt.lies = true
		found, _, _ := simulate(seed, opt, slog.New(slog.DiscardHandler))
		for _, kind := range []string{"open its log", "acknowledged", "raft: ", "members"} {
			if strings.Contains(found, kind) {
				kinds[kind]++
			}
		}
		if len(kinds) >= 2 {
			return
		}
	}
	t.Errorf("60 schedules with lying disks found only %v", kinds)
}
