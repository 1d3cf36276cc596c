package trial

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/linger"
	"skerry/internal/database/external"
	"skerry/internal/evidence/stats"
	"skerry/internal/lab"
	"skerry/internal/link/probe"
	"skerry/internal/record"
)

// Parameters of the echoes over real links, per second: their number, their interval, and the number of
// links above which one echo must suffice.
const (
	realEchoCount    = 5
	realInterval     = 150 * time.Millisecond
	maxFullEchoLinks = 256
)

// realLinks collects the round trips of real links. Echoes of one second may still be pending when the next
// second begins; rows are written in order nevertheless.
type realLinks struct {
	links []lab.Link
	// echo measures round trips over all links, in order.
	echo  func(context.Context) ([]probe.RTTResult, error)
	trips map[string][]float64 // ms, by link
	sums  map[string]record.LinkSeen
}

func newRealLinks(links []lab.Link) *realLinks {
	return &realLinks{links: links, trips: map[string][]float64{}, sums: map[string]record.LinkSeen{}}
}

// newLabLinks returns the collector of the real links of a lab, nil if it has none.
func newLabLinks(l *lab.Lab) *realLinks {
	links := l.RealLinks()
	if len(links) == 0 {
		return nil
	}
	count := realEchoCount
	if len(links) > maxFullEchoLinks {
		count = 1
	}
	r := newRealLinks(links)
	r.echo = func(ctx context.Context) ([]probe.RTTResult, error) {
		return l.EchoContinuously(ctx, links, count, realInterval)
	}
	return r
}

// measureReal measures each second from zero until the drive ends.
func (w *watch) measureReal(zero time.Time) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	work, ctx := errgroup.WithContext(w.ctx)
	written := make(chan struct{})
	close(written)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			before, mine := written, make(chan struct{})
			written = mine
			work.Go(func() error {
				defer close(mine)
				got, err := w.real.echo(ctx)
				<-before // cannot block: its goroutine has the same context
				if err != nil {
					return err
				}
				return w.writeRealSecond(int64(now.Sub(zero)/time.Second), got)
			})
		}
	}
	if err := work.Wait(); err != nil && w.ctx.Err() == nil {
		return fmt.Errorf("measure real links: %w", err)
	}
	return nil
}

// writeRealSecond records the echoes of one second.
func (w *watch) writeRealSecond(t int64, got []probe.RTTResult) error {
	var rows []record.LinkSecond
	all := record.NetworkSecond{T: t, Pairs: int64(len(got))}
	for i, r := range got {
		id := w.real.links[i].ID
		w.real.add(id, r)
		rows = append(rows, record.LinkSecond{
			T: t, Link: id, Sent: int64(r.Sent), Lost: int64(r.Lost), Min: ms(r.Min), Median: ms(r.Median), Max: ms(r.Max),
		})
		if len(r.Samples) == 0 {
			all.Unreachable++
			continue
		}
		all.Mean, all.Worst = all.Mean+ms(r.Median), max(all.Worst, ms(r.Max))
	}
	if answered := all.Pairs - all.Unreachable; answered > 0 {
		all.Mean /= float64(answered)
	}
	err := w.report.writer.LinkSeconds(rows...)
	if err == nil && !w.env.lab.Topology().Overlay.Routed() { // with an overlay, measureNetwork records this row
		w.report.live.SetNetwork(all)
		err = w.report.writer.NetworkSecond(all)
	}
	if err != nil {
		return recordError{err}
	}
	return nil
}

func (r *realLinks) add(id string, got probe.RTTResult) {
	s := r.sums[id]
	s.Sent, s.Lost = s.Sent+int64(got.Sent), s.Lost+int64(got.Lost)
	r.sums[id] = s
	for _, x := range got.Samples {
		r.trips[id] = append(r.trips[id], ms(x))
	}
}

// summarise returns the round trips and losses by link.
func (r *realLinks) summarise() map[string]record.LinkSeen {
	for id, s := range r.sums {
		trips := r.trips[id]
		slices.Sort(trips)
		if n := len(trips); n > 0 {
			s.MinMS, s.MaxMS = trips[0], trips[n-1]
			s.MedianMS, s.P99MS = stats.Quantile(0.5, trips), stats.Quantile(0.99, trips)
			_, s.JitterMS = stats.MeanDeviation(trips)
		}
		r.sums[id] = s
	}
	return r.sums
}

// measureNetwork records the round trips between all pairs of nodes, client included, each second from
// zero. Without an overlay the link probes already determine them.
func (w *watch) measureNetwork(zero time.Time) error {
	cloud := w.env.lab.Topology()
	if !cloud.Overlay.Routed() {
		return nil
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return nil
		case now := <-tick.C:
			row, err := networkSecond(w.ctx, w.env.lab)
			if err != nil {
				if w.ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("measure the network: %w", err)
			}
			row.T = int64(now.Sub(zero) / time.Second)
			w.report.live.SetNetwork(row)
			if err := w.report.writer.NetworkSecond(row); err != nil {
				return recordError{err}
			}
		}
	}
}

func networkSecond(ctx context.Context, l *lab.Lab) (record.NetworkSecond, error) {
	got, err := l.EchoAll(ctx)
	row := record.NetworkSecond{Pairs: int64(len(got))}
	if err != nil {
		return row, err
	}
	var sum time.Duration
	for _, r := range got {
		if len(r.Samples) == 0 {
			row.Unreachable++
			continue
		}
		sum += r.Samples[0]
		row.Worst = max(row.Worst, ms(r.Samples[0]))
	}
	if answered := row.Pairs - row.Unreachable; answered > 0 {
		row.Mean = ms(sum) / float64(answered)
	}
	return row, nil
}

// Connections to each server of a cluster that Skerry did not start: before the workload, and in each second of the
// measurement. More probes would be a load themselves.
const (
	serverDials       = 10
	serverDialPause   = 20 * time.Millisecond
	serverDialsSecond = 1
)

// externalCluster returns the trial's cluster if Skerry did not start it, or nil.
func (g *environment) externalCluster() *external.Cluster {
	c, _ := g.cluster.(*external.Cluster)
	return c
}

// probe measures the links of the lab, or the paths to the servers of a cluster that Skerry did not start.
func (g *environment) probe(ctx context.Context, client string) ([]record.LinkFidelity, error) {
	if c := g.externalCluster(); c != nil {
		return probeServers(ctx, client, c), nil
	}
	return probeLinks(ctx, g.lab)
}

// probing says what probe does.
func (g *environment) probing() string {
	if g.scratch != nil {
		return "measuring round trips to the servers"
	}
	return "probing the links"
}

// serverPath is the ID of the network between the client and a server, in the place of a link.
func serverPath(client, server string) string { return client + "~" + server }

// probeServers measures the round trip from this machine to each server.
func probeServers(ctx context.Context, client string, c *external.Cluster) []record.LinkFidelity {
	servers := c.Servers()
	results := dialServers(ctx, servers, serverDials)
	all := make([]record.LinkFidelity, len(servers))
	for i, s := range servers {
		all[i] = record.LinkFidelity{ID: serverPath(client, s), From: client, To: s, Real: true}
		if len(results[i].Samples) > 0 {
			all[i].Answered, all[i].RTTMS, all[i].RTTP99MS = true, ms(results[i].Median), ms(results[i].P99)
		}
	}
	return all
}

// newServerLinks returns the collector of the round trips to servers.
func newServerLinks(client string, c *external.Cluster) *realLinks {
	servers := c.Servers()
	links := make([]lab.Link, len(servers))
	for i, s := range servers {
		links[i] = lab.Link{ID: serverPath(client, s), A: client, B: s, Real: true}
	}
	r := newRealLinks(links)
	r.echo = func(ctx context.Context) ([]probe.RTTResult, error) {
		return dialServers(ctx, servers, serverDialsSecond), nil
	}
	return r
}

// dialServers connects count times to each server, all servers at the same time. A connection that fails is lost.
func dialServers(ctx context.Context, servers []string, count int) []probe.RTTResult {
	results := make([]probe.RTTResult, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			var samples []time.Duration
			sent := 0
			for range count {
				sent++
				if took, err := external.DialTime(ctx, s); err == nil {
					samples = append(samples, took)
				}
				if count > 1 && linger.For(ctx, serverDialPause) != nil {
					break
				}
			}
			results[i] = probe.NewRTTResult(sent, samples)
		})
	}
	all.Wait()
	return results
}

// medianTrips returns the medians of paths that answered, in seconds, sorted.
func medianTrips(seen map[string]record.LinkSeen) (trips []float64) {
	for _, s := range seen {
		if s.Sent > s.Lost {
			trips = append(trips, s.MedianMS/1000)
		}
	}
	slices.Sort(trips)
	return trips
}

// serversHere reports whether any server runs on this machine: its processes are then other programs to the sampler.
func serversHere(servers []string) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(servers, func(s string) bool {
		host, _, err := net.SplitHostPort(s)
		if err != nil {
			return false
		}
		ips := []net.IP{net.ParseIP(host)}
		if ips[0] == nil {
			if ips, err = net.LookupIP(host); err != nil {
				return false
			}
		}
		return slices.ContainsFunc(ips, func(ip net.IP) bool {
			return ip.IsLoopback() || slices.ContainsFunc(addrs, func(a net.Addr) bool {
				n, ok := a.(*net.IPNet)
				return ok && n.IP.Equal(ip)
			})
		})
	})
}
