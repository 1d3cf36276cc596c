package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

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
	trips map[string][]float64 // ms, by link
	sums  map[string]record.LinkSeen
}

func newRealLinks(links []lab.Link) *realLinks {
	return &realLinks{links: links, trips: map[string][]float64{}, sums: map[string]record.LinkSeen{}}
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
				count := realEchoCount
				if len(w.real.links) > maxFullEchoLinks {
					count = 1
				}
				got, err := w.env.lab.EchoContinuously(ctx, w.real.links, count, realInterval)
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
			s.MedianMS, s.P99MS = stat.Quantile(0.5, stat.Empirical, trips, nil), stat.Quantile(0.99, stat.Empirical, trips, nil)
			s.JitterMS = stat.PopStdDev(trips, nil)
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
