package main

import (
	"context"
	"fmt"
	"strings"

	"skerry/internal/lab"
)

// sweep clears what commands that were killed have left, and says so in a line.
func (a *app) sweep(ctx context.Context) error {
	cleared, err := lab.Sweep(ctx, a.stateDir)
	if len(cleared) > 0 {
		fmt.Fprintf(a.err, "cleared what a command that was killed had left: %s\n", strings.Join(cleared, ", "))
	}
	if err != nil {
		return fmt.Errorf("clearing what a command that was killed had left: %w", err)
	}
	return nil
}
