package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"skerry/internal/machine/inventory"
	"skerry/internal/machine/netprofile"
	"skerry/internal/machine/pathprobe"
	"skerry/internal/machine/transport"
)

const (
	// often is the shortest interval between probes of a pair. A long measurement uses a longer one, for at most
	// mostProbes.
	often      = 100 * time.Millisecond
	mostProbes = 36_000
	// rating is the maximum duration of TCP streams in each direction; it is at most a fifth of the measurement. Several
	// streams fill a long path sooner than one.
	rating, streams = 3 * time.Second, 4
	// payload and packet are TCP's payload with time stamps in a packet of 1500 bytes. A topology's rates count whole
	// packets.
	payload, packet = 1448, 1500
)

// Measure measures the network between each pair of machines for a time: first round trips, all pairs concurrently; then
// the bandwidth of streams, one pair after the other. The profile includes failed machines and pairs; the error is that of
// ctx.
func Measure(ctx context.Context, machines []inventory.Entry, o transport.Options, lasts time.Duration, progress func(string)) (netprofile.Profile, error) {
	m := measuring{every: max(often, lasts/mostProbes), lasts: lasts}
	m.reach(ctx, machines, o)
	defer m.close()
	p := &m.portrait
	progress(fmt.Sprintf("measuring round trips between %d machines for %v", len(machines), lasts))
	p.Began = time.Now()
	m.roundTrips(ctx)
	for i := range m.ways {
		if ctx.Err() == nil && p.Pairs[i].Sent > p.Pairs[i].Lost {
			progress(fmt.Sprintf("measuring the rates between %s and %s", p.Pairs[i].From, p.Pairs[i].To))
			m.rates(ctx, i)
		}
	}
	p.Seconds, p.EveryMS = lasts.Seconds(), float64(m.every)/float64(time.Millisecond)
	return *p, ctx.Err()
}

// measuring is a running measurement.
type measuring struct {
	portrait netprofile.Profile
	every    time.Duration
	lasts    time.Duration
	stations []station // of the machines
	ways     [][2]int  // of the pairs, by stations
}

// station is a connected machine and its address.
type station struct {
	*transport.Connection // nil where it was not
	at                    string
	token                 [16]byte
	stop                  func()
}

// reach connects to the machines and starts a probe listener on each.
func (m *measuring) reach(ctx context.Context, machines []inventory.Entry, o transport.Options) {
	m.stations, m.portrait.Machines = make([]station, len(machines)), make([]netprofile.MachineProfile, len(machines))
	o.Inspect = true
	var each sync.WaitGroup
	for i, x := range machines {
		to := &m.portrait.Machines[i]
		*to = netprofile.MachineProfile{Name: x.Name, Site: x.Site}
		each.Go(func() {
			if err := m.stations[i].open(ctx, x, o); err != nil {
				to.Problem = err.Error()
			}
		})
	}
	each.Wait()
	for i := range machines {
		for k := i + 1; k < len(machines); k++ {
			if m.stations[i].Connection != nil && m.stations[k].Connection != nil {
				m.ways = append(m.ways, [2]int{i, k})
				m.portrait.Pairs = append(m.portrait.Pairs, netprofile.PairProfile{From: machines[i].Name, To: machines[k].Name})
			}
		}
	}
}

func (s *station) open(ctx context.Context, x inventory.Entry, o transport.Options) error {
	c, err := transport.Open(ctx, x, o)
	if err != nil {
		return err
	}
	_, _ = rand.Read(s.token[:]) // it never fails
	port, stop, err := c.ListenForProbes(ctx, s.token)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	addr := x.Address()
	if addr == "" {
		addr = c.Hello.Addr
	}
	s.Connection, s.stop, s.at = c, stop, net.JoinHostPort(addr, strconv.Itoa(port))
	return nil
}

// close ends listeners and connections. Errors of agents that close do not affect the result.
func (m *measuring) close() {
	var each sync.WaitGroup
	for _, s := range m.stations {
		if s.Connection != nil {
			each.Go(func() { s.stop(); _ = s.Close() })
		}
	}
	each.Wait()
}

// roundTrips measures all pairs concurrently.
func (m *measuring) roundTrips(ctx context.Context) {
	var each sync.WaitGroup
	for i, way := range m.ways {
		p := &m.portrait.Pairs[i]
		each.Go(func() {
			from, to := m.stations[way[0]], m.stations[way[1]]
			r, err := from.MeasurePath(ctx, pathprobe.Spec{Addr: to.at, Token: to.token, Probes: max(1, int(m.lasts/m.every)), Every: m.every, Course: true})
			if p.AddSamples(r.Course); err != nil {
				p.Problem, p.Sent, p.Lost = err.Error(), r.Sent, r.Lost
			}
		})
	}
	each.Wait()
}

// rates measures the bandwidth between a pair in each direction.
func (m *measuring) rates(ctx context.Context, i int) {
	p := &m.portrait.Pairs[i]
	a, b := m.stations[m.ways[i][0]], m.stations[m.ways[i][1]]
	for _, way := range []struct {
		from, to station
		rate     *int64
	}{{a, b, &p.There}, {b, a, &p.Back}} {
		bps, err := together(ctx, way.from, pathprobe.Spec{Addr: way.to.at, Token: way.to.token, Probes: probes, Every: time.Millisecond, Stream: min(rating, m.lasts/5)})
		if err != nil {
			p.Problem = fmt.Sprintf("the rate from %s to %s is not known: %v", way.from.Name(), way.to.Name(), err)
			continue
		}
		*way.rate = bps * packet / payload
	}
}

// together returns the total bandwidth of several streams in bit/s.
func together(ctx context.Context, from station, o pathprobe.Spec) (bps int64, err error) {
	var got [streams]pathprobe.Result
	var errs [streams]error
	var each sync.WaitGroup
	for i := range got {
		each.Go(func() { got[i], errs[i] = from.MeasurePath(ctx, o) })
	}
	each.Wait()
	for _, r := range got {
		bps += r.Bandwidth
	}
	return bps, errors.Join(errs[:]...)
}
