package event

import (
	"context"
	"sync"
)

// ctxMutex lets one through at a time, and those that wait give up with their context: what
// is done behind it may take an hour.
type ctxMutex struct {
	once sync.Once
	slot chan struct{}
}

// lock returns how to leave.
func (g *ctxMutex) lock(ctx context.Context) (leave func(), err error) {
	g.once.Do(func() { g.slot = make(chan struct{}, 1) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case g.slot <- struct{}{}:
		return func() { <-g.slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
