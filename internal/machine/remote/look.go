package remote

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/reach"
	"skerry/internal/machine/rpc"
)

// Hello is what the agent says of itself, with its program's checksum where that is asked for.
func (m *Machine) Hello(ctx context.Context, program bool) (rpc.Hello, error) {
	h, err := ask[rpc.Hello](ctx, m, "/hello", rpc.Of{}, program)
	if err == nil {
		m.kernel = h.Kernel
	}
	return h, err
}

// Examine is what `skerry doctor` says there.
func (m *Machine) Examine(ctx context.Context) (doctor.Report, error) {
	return ask[doctor.Report](ctx, m, "/examine", rpc.Of{}, rpc.Nothing{})
}

// Clock asks for the time so many times, and believes the answer that was back soonest: its offset may
// be wrong by half the round trip. What the machine's nodes are asked for afterwards goes by it.
//
//	here   sent ───────────── back      the answer was given between: were it given right
//	                  now                after sending, or right before it was back, the
//	there  ────────── ▲ ─────            offset would be half the round trip more or less
//
// (D. L. Mills, "Internet time synchronization: the Network Time Protocol", 1991, section 4.)
func (m *Machine) Clock(ctx context.Context, times int) (machine.Clock, error) {
	best := machine.Clock{Uncertainty: -1}
	for range times {
		sent := time.Now()
		there, err := ask[rpc.Moment](ctx, m, "/clock", rpc.Of{}, rpc.Nothing{})
		if err != nil {
			return best, err
		}
		trip := time.Since(sent) // by the clock that nobody sets
		if best.Uncertainty < 0 || trip/2 < best.Uncertainty {
			best = machine.Clock{Offset: time.Unix(0, there.Now).Sub(sent.Add(trip / 2)), Uncertainty: trip / 2}
		}
	}
	m.ahead.Store(int64(best.Offset))
	return best, nil
}

// Reachable has the machine answer measurements until stop is called.
func (m *Machine) Reachable(ctx context.Context, token [16]byte) (port int, stop func(), err error) {
	life, end := context.WithCancel(ctx)
	a, err := m.begin(life, "/reach/listen", rpc.Of{}, token, nil)
	if err == nil {
		err = json.Unmarshal(a.first, &port)
	}
	if err != nil {
		end()
		return 0, nil, err
	}
	return port, func() { end(); a.Close() }, nil
}

// Measure measures the way from the machine to where another is Reachable.
func (m *Machine) Measure(ctx context.Context, o reach.Order) (reach.Result, error) {
	r, err := ask[rpc.Measured](ctx, m, "/reach/measure", rpc.Of{}, o)
	if err != nil {
		return r.Result, err
	}
	return r.Result, errors.Join(r.Problem.Err())
}
