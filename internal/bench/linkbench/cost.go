package linkbench

import (
	"context"
	"errors"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/evidence/stats"
	"skerry/internal/link"
)

// Cost is what an emulator takes for its work: this program's, or that of Options.Against, which
// takes turns with it under the same load.
type Cost struct {
	// Emulator is this or against.
	Emulator string `json:"emulator"`
	// Idle is the processor time in percent of one that all links of azure8 take without traffic.
	Idle float64 `json:"idle_percent"`
	// Microseconds of processor that a packet of a flood took, Packets how many a second came through.
	Microseconds float64 `json:"microseconds_per_packet"`
	Packets      float64 `json:"packets_per_second"`
	// BPS is the payload of one TCP stream, in bit/s.
	BPS float64 `json:"bps"`
}

// The emulators that Cost knows.
const (
	costThis    = "this"
	costAgainst = "against"
)

func (b *bench) cost(ctx context.Context) error {
	own := b.Command
	defer func() { b.Command = own }()
	emulators := []string{costThis}
	if len(b.Against) > 0 {
		emulators = []string{costAgainst, costThis}
	}
	for range pick(b, 5, 2) {
		for _, name := range emulators {
			b.Progress("cost of the emulator: " + name)
			b.Command = own
			if name == costAgainst {
				b.Command = b.Against
			}
			c := Cost{Emulator: name}
			if err := errors.Join(b.idle(ctx, &c), b.loaded(ctx, &c)); err != nil {
				return err
			}
			b.result.Cost = append(b.result.Cost, c)
		}
	}
	return nil
}

func (b *bench) idle(ctx context.Context, c *Cost) (err error) {
	w, err := b.azure(ctx, 1, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	// Devices that came up make their neighbours known before anything is idle.
	if err := linger.For(ctx, pick(b, 3*time.Second, time.Second)); err != nil {
		return err
	}
	before, err := w.account(ctx)
	if err != nil {
		return err
	}
	if err := linger.For(ctx, pick(b, 6*time.Second, time.Second)); err != nil {
		return err
	}
	after, err := w.account(ctx)
	c.Idle = 100 * (after.busy - before.busy).Seconds() / after.at.Sub(before.at).Seconds()
	return err
}

func (b *bench) loaded(ctx context.Context, c *Cost) (err error) {
	w, err := b.pair(ctx, link.Quality{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if c.BPS, err = w.streams(ctx, pick(b, 2*time.Second, 300*time.Millisecond)); err != nil {
		return err
	}
	c.Packets, c.Microseconds, err = w.flood(ctx, pick(b, 3*time.Second, 300*time.Millisecond))
	return err
}

// costs are the medians of an emulator's turns.
func costs(all []Cost, emulator string) (m Cost, ok bool) {
	var idle, us, packets, bps []float64
	for _, c := range all {
		if c.Emulator == emulator {
			idle, us = append(idle, c.Idle), append(us, c.Microseconds)
			packets, bps = append(packets, c.Packets), append(bps, c.BPS)
		}
	}
	if len(idle) == 0 {
		return m, false
	}
	return Cost{emulator, stats.Median(idle), stats.Median(us), stats.Median(packets), stats.Median(bps)}, true
}
