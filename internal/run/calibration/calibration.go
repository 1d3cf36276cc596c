// Package calibration measures what every trial leans on, in the same way on every machine: a
// second's work before a task's first trial, by which machines can be told from each other whatever
// the trials were.
package calibration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

const (
	// rounds of which the median counts: one may be disturbed.
	rounds = 3
	// operations of a round take a tenth of a second on a core of 2020.
	operations = "100000"
	// echoes make a 99th percentile of twenty.
	echoes = 2000
)

// Run calibrates this machine.
func Run(ctx context.Context) (record.Calibration, error) {
	var c record.Calibration
	var driver []float64
	for i := range rounds {
		v, err := drive(ctx, uint64(i))
		if err != nil {
			return c, fmt.Errorf("calibrating this machine: %w", err)
		}
		driver = append(driver, v)
	}
	slices.Sort(driver)
	trips, err := echo(ctx)
	if err != nil {
		return c, fmt.Errorf("calibrating this machine: %w", err)
	}
	slices.Sort(trips)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return record.Calibration{
		DriverOps: driver[rounds/2], LoopbackP50US: us(trips[len(trips)/2]), LoopbackP99US: us(trips[len(trips)*99/100]),
	}, nil
}

// drive is how many operations one of the driver's workers does in a second of processor time,
// against a database that answers at once.
func drive(ctx context.Context, seed uint64) (float64, error) {
	p, _ := ycsb.Builtin("a")
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": "10000", "operationcount": operations}))
	if err != nil {
		return 0, err
	}
	db := new(load.NullDatabase)
	got, err := load.Run(ctx, load.Spec{Phase: load.PhaseRun, Workload: w, Threads: 1, Seed: seed},
		func(ctx context.Context) (load.Client, error) { return db.Open(ctx, nil) }, nil)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return 0, fmt.Errorf("driving the null database: %w", err)
	}
	return float64(got.OK) / got.CPU.Seconds(), nil
}

// echo is how long messages of one byte take there and back over loopback: system calls, and two changes
// of the thread that runs.
func echo(ctx context.Context) (trips []time.Duration, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening on loopback: %w", err)
	}
	answered := make(chan error, 1)
	go func() { answered <- answer(l) }()
	defer func() { // the caller's end of the connection is closed by now
		closed := l.Close()
		err = errors.Join(err, <-answered, closed)
	}()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dialling on loopback: %w", err), l.Close())
	}
	defer c.Close()
	b := make([]byte, 1)
	for range echoes {
		sent := time.Now()
		if _, err := c.Write(b); err != nil {
			return nil, fmt.Errorf("echoing over loopback: %w", err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return nil, fmt.Errorf("echoing over loopback: %w", err)
		}
		trips = append(trips, time.Since(sent))
	}
	return trips, ctx.Err()
}

// answer sends one caller's bytes back to it.
func answer(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return fmt.Errorf("answering on loopback: %w", err)
	}
	defer c.Close()
	if _, err := io.Copy(c, c); err != nil {
		return fmt.Errorf("answering on loopback: %w", err)
	}
	return nil
}
