package load

import (
	"context"
	"errors"
)

// Open makes the client of one worker.
type Open func(ctx context.Context) (Client, error)

// Run drives a database until the spec's end or the end of ctx, which ends it early
// with what was measured so far: operations in flight are awaited, up to their
// timeout. onSecond, which may be nil, is called once a second from one goroutine and
// must return soon.
//
// Operations that fail are part of the result, never an error. An error means that
// nothing was measured (a bad spec, no client could be opened) or, in the load phase,
// wraps ErrIncomplete: records without an acknowledgement, which the result lists.
func Run(ctx context.Context, spec Spec, open Open, onSecond func(Interval)) (Result, error) {
	return Result{}, errors.ErrUnsupported
}

// ErrIncomplete is a load phase that ended before every record was acknowledged.
var ErrIncomplete = errors.New("records were not acknowledged")
