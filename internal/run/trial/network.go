package trial

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/lab"
	"skerry/internal/record"
)

// network records what packets meet between the nodes, each second from zero on: one echo
// between every two of them, the client's included. Without an overlay nothing but the links
// decides that, and they were measured before.
func (w *watch) network(zero time.Time) error {
	cloud := w.ground.lab.Topology()
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
			row, err := networkSecond(w.ctx, w.ground.lab)
			if err != nil {
				if w.ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("measuring the network: %w", err)
			}
			row.T = int64(now.Sub(zero) / time.Second)
			w.tell.live.Network(row)
			if err := w.tell.writer.NetworkSecond(row); err != nil {
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
