package agent

import (
	"context"

	"skerry/internal/machine/reach"
	"skerry/internal/machine/rpc"
)

var reachCalls = map[string]call{
	"/reach/listen": listen,
	"/reach/measure": plain(itself, func(ctx context.Context, _ *server, o reach.Order) (rpc.Measured, error) {
		r, err := reach.Measure(ctx, o)
		return rpc.Measured{Result: r, Problem: rpc.Tell(err)}, nil
	}),
}

// listen answers with a port, and has it be answered on until the call is over.
func listen(ctx context.Context, _ *server, x *exchange) {
	token, err := asked[[16]byte](x)
	if err != nil {
		x.answer(nil, err)
		return
	}
	l, err := reach.Listen(token)
	if err != nil {
		x.answer(nil, err)
		return
	}
	defer l.Close()
	if x.answer(l.Port(), nil) {
		<-ctx.Done()
	}
}
