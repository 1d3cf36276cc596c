package dbbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/evidence/stats"
	"skerry/internal/kernel/procfs"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

const (
	costThreads = 4
	costRecords = 1000
	costRounds  = 5
	// costTime is about how long a round takes.
	costTime = 2 * time.Second
	// costProbe are the operations by which the length of a round is found.
	costProbe = 2000
)

// measureCost reads records with the driver and with a loop written by hand, in turns.
func measureCost(ctx context.Context, db database.Database, properties map[string]string) (Cost, error) {
	c := Cost{Threads: costThreads, Rounds: costRounds}
	p, _ := ycsb.Builtin("c")
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": strconv.Itoa(costRecords), "requestdistribution": "uniform"}))
	if err != nil {
		return c, err
	}
	open := func(ctx context.Context) (load.Client, error) { return db.Open(ctx, properties) }
	spec := load.Spec{Phase: load.PhaseLoad, Workload: w, Threads: costThreads, Seed: 1}
	if _, err := load.Run(ctx, spec, open, nil); err != nil {
		return c, err
	}
	spec.Phase = load.PhaseRun
	drive := func(n int64) (float64, time.Duration, error) {
		spec.Operations = n
		return spent(n, func() error {
			r, err := load.Run(ctx, spec, open, nil)
			if err == nil && r.OK != n {
				err = fmt.Errorf("%d of %d reads ended well", r.OK, n)
			}
			return err
		})
	}
	_, took, err := drive(costProbe)
	if err != nil {
		return c, err
	}
	c.Operations = max(costProbe, int64(costProbe*costTime.Seconds()/took.Seconds()))
	hand, _ := db.(database.Handwritten)
	var client, byHand []float64
	for range costRounds {
		rate, _, err := drive(c.Operations)
		if err != nil {
			return c, err
		}
		client = append(client, rate)
		if hand == nil {
			continue
		}
		rate, _, err = spent(c.Operations, func() error { return loop(ctx, hand, properties, &w, c.Operations) })
		if err != nil {
			return c, fmt.Errorf("the loop written by hand: %w", err)
		}
		byHand = append(byHand, rate)
	}
	c.Client = stats.Median(client)
	if hand != nil {
		c.Handwritten = stats.Median(byHand)
	}
	return c, nil
}

// spent is how many operations a second of CPU time does, and how long they took.
func spent(operations int64, f func() error) (perSecond float64, took time.Duration, err error) {
	before, began := used(), time.Now()
	err = f()
	return float64(operations) / (used() - before).Seconds(), time.Since(began), err
}

// used is the CPU time of this process and of its children: HBase's client is one.
func used() time.Duration {
	var self, ended unix.Rusage
	if errors.Join(unix.Getrusage(unix.RUSAGE_SELF, &self), unix.Getrusage(unix.RUSAGE_CHILDREN, &ended)) != nil {
		return 0 // they cannot fail for the process itself
	}
	total := self.Utime.Nano() + self.Stime.Nano() + ended.Utime.Nano() + ended.Stime.Nano()
	for _, pid := range procfs.Children(os.Getpid()) {
		if s, err := procfs.ReadStat(pid); err == nil { // it may have ended
			total += s.CPU.Nanoseconds()
		}
	}
	return time.Duration(total)
}

// loop is what a person would write: so many workers, each with a connection, reading
// records at random.
func loop(ctx context.Context, hand database.Handwritten, properties map[string]string, w *ycsb.Workload, operations int64) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range int64(costThreads) {
		g.Go(func() (err error) {
			read, done, err := hand.Handwritten(ctx, properties)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for n := i; n < operations; n += costThreads {
				if err := read(ctx, w.Key(random.Int64N(costRecords))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
