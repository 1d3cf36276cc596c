package hydrabench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/system/hydra/api"
	"skerry/internal/system/hydra/command"
	"skerry/internal/system/hydra/hydraclient"
)

const (
	benchTable = "bench"
	// opTimeout bounds an operation, watchTimeout one of a watcher, which tries again.
	opTimeout    = 15 * time.Second
	watchTimeout = 10 * time.Second
	// fillBatch is how many rows a transaction of a fill has.
	fillBatch = 500
)

// operations are what a worker does.
type operations struct {
	write func(ctx context.Context, key string, value []byte) error
	read  func(ctx context.Context, key string) error
	close func() error
}

func perform(ctx context.Context, j job) (answer, error) {
	if j.Op == opFill {
		return answer{}, fill(ctx, j)
	}
	open := openHydra
	switch {
	case j.System == systemEtcd, j.System == systemEtcd5:
		open = openEtcd
	case j.DNS != "":
		open = openNamed
	}
	o, err := open(ctx, j)
	if err != nil {
		return answer{}, err
	}
	a := drive(ctx, j, o)
	return a, o.close()
}

// openHydra is through the client of Hydra.
func openHydra(_ context.Context, j job) (operations, error) {
	c, err := hydraclient.New(hydraclient.Config{Endpoints: j.Endpoints, Timeout: opTimeout, Streams: max(1, j.Workers/perConnection)})
	if err != nil {
		return operations{}, err
	}
	return operations{
		write: func(ctx context.Context, key string, value []byte) error {
			options := []hydraclient.Option{}
			if j.Op == opApply {
				options = append(options, hydraclient.Ack(api.Applied))
			}
			if j.Op == opWatch { // it goes on whatever is lost
				options = append(options, hydraclient.RequestID(hydraclient.NewRequestID()))
			}
			_, err := c.Put(ctx, benchTable, key, json.RawMessage(value), options...)
			return err
		},
		read: func(ctx context.Context, key string) error {
			_, err := c.Get(ctx, benchTable, key, hydraclient.Read(api.Local))
			return err
		},
		close: c.Close,
	}, nil
}

// drive has workers operate in a closed loop and sums up what they saw.
func drive(ctx context.Context, j job, o operations) answer {
	began, meter := time.Now(), startMeter()
	measuring := ctx
	if j.Seconds > 0 {
		var cancel context.CancelFunc
		measuring, cancel = context.WithDeadline(ctx, began.Add(time.Duration(j.Seconds*float64(time.Second))))
		defer cancel()
	}
	value := []byte(fmt.Sprintf(`{"v":%q}`, strings.Repeat("x", max(0, j.Payload-len(`{"v":""}`)))))
	type tally struct {
		took   []time.Duration
		seen   []try
		failed int64
		why    string
	}
	tallies := make([]tally, j.Workers)
	var all sync.WaitGroup
	for i := range tallies {
		all.Go(func() {
			t := &tallies[i]
			random := rand.New(rand.NewPCG(uint64(i), 1))
			reads := j.Op == opRead || j.Op == opMix && i%2 == 0
			limit := opTimeout
			if j.Op == opWatch {
				limit = watchTimeout
			}
			for measuring.Err() == nil {
				// What is under way when the time ends is ended: nothing is cut off.
				once, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
				key := fmt.Sprintf("k%09d", random.IntN(j.Keys))
				at := time.Now()
				var err error
				if reads {
					err = o.read(once, key)
				} else {
					err = o.write(once, key, value)
				}
				cancel()
				end := time.Now()
				if j.Op == opWatch {
					t.seen = append(t.seen, try{at.UnixNano(), end.UnixNano(), err == nil})
				}
				if err != nil {
					t.failed++
					t.why = err.Error()
					continue
				}
				t.took = append(t.took, end.Sub(at))
			}
		})
	}
	all.Wait()
	l := Load{System: j.System, Op: j.Op, At: j.At, Workers: j.Workers, Seconds: time.Since(began).Seconds()}
	var took []time.Duration
	a := answer{}
	for _, t := range tallies {
		took = append(took, t.took...)
		a.Seen = append(a.Seen, t.seen...)
		l.Failed += t.failed
		if t.why != "" {
			l.Error = t.why
		}
	}
	l.sum(took)
	meter.end(&l)
	a.Load = l
	return a
}

// sum fills in what latencies tell.
func (l *Load) sum(took []time.Duration) {
	l.OK = int64(len(took))
	l.Rate = float64(l.OK) / l.Seconds
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	at := func(q float64) float64 { return ms(took[min(len(took)-1, int(q*float64(len(took))))]) }
	l.Mean, l.P50, l.P95, l.P99, l.Max = ms(sum)/float64(len(took)), at(0.5), at(0.95), at(0.99), ms(took[len(took)-1])
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fill writes rows k000000000 to the last, many in a transaction.
func fill(ctx context.Context, j job) error {
	c, err := hydraclient.New(hydraclient.Config{Endpoints: j.Endpoints, Timeout: time.Minute})
	if err != nil {
		return err
	}
	value := json.RawMessage(fmt.Sprintf(`{"v":%q}`, strings.Repeat("x", max(0, j.Payload-len(`{"v":""}`)))))
	next := make(chan int)
	failures := make(chan error, j.Workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for range j.Workers {
		all.Go(func() {
			for from := range next {
				var t api.Transaction
				for k := from; k < min(from+fillBatch, j.Keys); k++ {
					t.Writes = append(t.Writes, api.Write{Do: command.Put, Table: benchTable, Key: fmt.Sprintf("k%09d", k), Value: value})
				}
				t.RequestID = fmt.Sprintf("fill/%d", from)
				if err := put(ctx, c, t); err != nil {
					failures <- err
					cancel()
					return
				}
			}
		})
	}
	for from := 0; from < j.Keys && ctx.Err() == nil; from += fillBatch {
		select {
		case next <- from:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	close(failures)
	return errors.Join(<-failures, c.Close())
}

// put does a transaction of a fill, again and again while the log is full: it waits for
// databases.
func put(ctx context.Context, c *hydraclient.Client, t api.Transaction) error {
	for {
		_, err := c.Transact(ctx, t)
		if !errors.Is(err, hydraclient.ErrOverloaded) {
			return err
		}
		if err := linger.For(ctx, poll); err != nil {
			return err
		}
	}
}
