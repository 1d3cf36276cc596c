package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link/probe"
	"skerry/internal/machine"
)

func (p *part) MeasureRTT(ctx context.Context, e machine.RTTSpec) ([]probe.RTTResult, error) {
	lists := make([]machine.RTTSpec, len(p.parts))
	places := make([][]int, len(p.parts)) // where in what was asked
	for at, w := range e.Paths {
		i, err := p.index(w.Node)
		if err != nil {
			return nil, err
		}
		lists[i].Paths, places[i] = append(lists[i].Paths, w), append(places[i], at)
	}
	results := make([]probe.RTTResult, len(e.Paths))
	err := p.each(func(i int, x machine.Part) error {
		if len(lists[i].Paths) == 0 {
			return nil
		}
		lists[i].Count, lists[i].Interval, lists[i].Undisturbed = e.Count, e.Interval, e.Undisturbed
		got, err := x.MeasureRTT(ctx, lists[i])
		for k, r := range got {
			results[places[i][k]] = r // each machine has places of its own
		}
		return err
	})
	return results, err
}

// Receiver ports of trains, below the kernel's ephemeral range.
const (
	trainPort  = 20000
	trainPorts = 10000
	// tries bounds the ports to try, because programs on the node may use some.
	tries = 5
)

// MeasureTrain implements machine.Measurer. A train between machines is measured at both ends.
func (p *part) MeasureTrain(ctx context.Context, t machine.TrainSpec) (came probe.TrainResult, err error) {
	i, err := p.index(t.From.Node)
	if err != nil {
		return came, err
	}
	j, err := p.index(t.To.Node)
	if err != nil {
		return came, err
	}
	if i == j {
		came, err = p.parts[i].MeasureTrain(ctx, t)
		return came, p.fleet.nameError(i, err)
	}
	for range tries {
		t.Meeting = &probe.Meeting{Port: uint16(trainPort + rand.IntN(trainPorts)), Nonce: rand.Uint64()}
		if came, err = p.across(ctx, i, j, t); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return came, err
}

// across measures a train between machines. If one end fails, the other is cancelled.
func (p *part) across(ctx context.Context, from, to int, t machine.TrainSpec) (came probe.TrainResult, err error) {
	send, receive := t, t
	send.To.Node, receive.From.Node = "", ""
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		_, err := p.parts[from].MeasureTrain(ctx, send)
		return p.fleet.nameError(from, err)
	})
	both.Go(func() (err error) {
		came, err = p.parts[to].MeasureTrain(ctx, receive)
		return p.fleet.nameError(to, err)
	})
	return came, both.Wait()
}
