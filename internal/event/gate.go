package event

import (
	"context"
	"sync"
)

// gate lets one through at a time, and those that wait give up with their context: what
// is done behind it may take an hour.
type gate struct {
	made sync.Once
	free chan struct{}
}

// enter returns how to leave.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	g.made.Do(func() { g.free = make(chan struct{}, 1) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case g.free <- struct{}{}:
		return func() { <-g.free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
