// Package linger waits for some time, and no longer than a context lasts.
package linger

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends: then it returns why (context.Cause). A d that is not
// above 0 is no wait.
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
