package network

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"skerry/internal/kernel/netns"
)

// Each calls f for every node, of so many, by its name on a few threads, each of which f may
// leave in any network namespace. The first error ends it.
func Each(ctx context.Context, nodes []string, f func(node string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan string)
	group.Go(func() error {
		defer close(next)
		for _, n := range nodes {
			select {
			case next <- n:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(runtime.NumCPU(), len(nodes)) {
		group.Go(func() error {
			return netns.OnNewThread(func() error {
				for n := range next {
					if err := f(n); err != nil {
						return fmt.Errorf("node %s: %w", n, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}
