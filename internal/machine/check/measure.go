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
	// often is how often a round trip of each pair is measured, mostProbes how many at the most: of a long
	// time less often.
	often      = 100 * time.Millisecond
	mostProbes = 36_000
	// rating is for how long TCP streams send each way, at the most: a fifth of the time. Several at once get what
	// one alone does not in that time over a long way.
	rating, streams = 3 * time.Second, 4
	// payload and packet are what TCP puts into a packet of 1500 bytes, with time stamps: rates of a topology
	// count whole packets.
	payload, packet = 1448, 1500
)

// Measure measures for a time what lies between each two machines: round trips between all at the same time,
// and then what streams get each way, one pair after another. Machines and pairs that could not be measured are
// told in the portrait; the error is of ctx alone.
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

// measuring is a measurement under way.
type measuring struct {
	portrait netprofile.Profile
	every    time.Duration
	lasts    time.Duration
	stations []station // of the machines
	ways     [][2]int  // of the pairs, by stations
}

// station is a machine that was reached, and where others find it.
type station struct {
	*transport.Connection // nil where it was not
	at                    string
	token                 [16]byte
	stop                  func()
}

// reach reaches the machines, and has each be answered on.
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
				m.portrait.Pairs = append(m.portrait.Pairs, netprofile.Pair{From: machines[i].Name, To: machines[k].Name})
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

// close ends what was begun. What an agent that has answered all complains of at its end changes nothing.
func (m *measuring) close() {
	var each sync.WaitGroup
	for _, s := range m.stations {
		if s.Connection != nil {
			each.Go(func() { s.stop(); _ = s.Close() })
		}
	}
	each.Wait()
}

// roundTrips measures all pairs at the same time.
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

// rates measures what streams get between a pair, each way.
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

// together is what several streams get, in bit/s.
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
