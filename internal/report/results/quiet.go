package results

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/evidence/sample"
	"skerry/internal/machine/files"
)

const (
	// quietShare is how much of a machine's processors others may use where figures are to be
	// published, over quietSpan.
	quietShare = 0.05
	quietSpan  = 5 * time.Second
)

// Quiet waits until the machine does nothing else. told is called with the share of its
// processors that others use, each time that this is too much.
func Quiet(ctx context.Context, on files.System, cores int, told func(busy float64)) error {
	for {
		before, err := sample.ReadMachine(ctx, on)
		if err != nil {
			return fmt.Errorf("looking whether the machine is busy: %w", err)
		}
		begin := time.Now()
		if err := linger.For(ctx, quietSpan); err != nil {
			return err
		}
		after, err := sample.ReadMachine(ctx, on)
		if err != nil {
			return fmt.Errorf("looking whether the machine is busy: %w", err)
		}
		used := after.Busy + after.Steal - before.Busy - before.Steal
		busy := used.Seconds() / time.Since(begin).Seconds() / float64(cores)
		if busy <= quietShare {
			return nil
		}
		told(busy)
	}
}
