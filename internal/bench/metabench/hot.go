package metabench

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Hot is what one directory takes, in parts on one server after the other.
type Hot struct {
	Creations []Creations `json:"creations,omitempty"`
	Filled    *Filled     `json:"filled,omitempty"`
}

// Creations are durable files made in one directory.
type Creations struct {
	Servers int `json:"servers"`
	// Share is how many processors each server may use; 0: as many as there are.
	Share   float64 `json:"cores_each,omitempty"`
	Creates float64 `json:"create_s"`
	// Processors that were busy all the while: the servers' and the clients'.
	ServersBusy float64 `json:"servers_cores"`
	ClientsBusy float64 `json:"clients_cores"`
}

// hotServers is on how many servers the directory is at most.
const hotServers = 3

// hot measures creations in one directory on one, two and three servers, as they are and with
// a share of a processor each, and fills one.
func (b *bench) hot(ctx context.Context) error {
	shares := []float64{0}
	if b.Share > 0 {
		shares = append(shares, b.Share)
	}
	for _, cores := range shares {
		for n := 1; n <= hotServers; n++ {
			b.say("creations in a directory on %d servers, %s", n, coresEach(cores))
			one, err := b.creations(ctx, n, cores)
			if err != nil {
				return err
			}
			b.r.Hot.Creations = append(b.r.Hot.Creations, one)
		}
	}
	if b.Entries == 0 {
		return nil
	}
	s, err := b.share(ctx, hotServers, 0)
	if err != nil {
		return err
	}
	f, err := b.filled(ctx, s)
	b.r.Hot.Filled = &f
	return errors.Join(err, s.stop())
}

func coresEach(cores float64) string {
	if cores == 0 {
		return "processors shared"
	}
	return strconv.FormatFloat(cores, 'g', -1, 64) + " of a processor each"
}

func (b *bench) creations(ctx context.Context, n int, cores float64) (c Creations, err error) {
	s, err := b.share(ctx, n, cores)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	var busy, own [2]time.Duration
	if busy[0], own[0], err = s.busy(); err != nil {
		return c, err
	}
	began := time.Now()
	c.Servers, c.Share = n, cores
	c.Creates, err = loops(ctx, b.Clients, b.Duration, func(ctx context.Context, client int) (func(i int) error, func() error, error) {
		to, err := s.dial(ctx)
		var name, text []byte
		return func(i int) error {
			name = strconv.AppendInt(append(strconv.AppendInt(name[:0], int64(client), 10), '-'), int64(i), 10)
			text = append(append(text[:0], "create /hot/"...), name...)
			return to[to.of(name)].do(text)
		}, to.close, err
	})
	if err != nil {
		return c, err
	}
	took := time.Since(began).Seconds()
	busy[1], own[1], err = s.busy()
	c.ServersBusy, c.ClientsBusy = (busy[1]-busy[0]).Seconds()/took, (own[1]-own[0]).Seconds()/took
	return c, err
}
