// Package linger sleeps with a context.
package linger

import (
	"context"
	"time"
)

// For sleeps for d. It returns context.Cause(ctx) at once if ctx ends or has ended. It does not sleep if d <= 0.
func For(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil || d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
