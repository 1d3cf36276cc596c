package rebalbench

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"skerry/internal/load"
)

// clients drive workload A while slots move, and remember every second of it.
type clients struct {
	session *load.Session
	done    chan struct{}

	mu      sync.Mutex
	seconds []load.Interval
	news    chan struct{} // closed, and replaced, with every second
}

const (
	loadThreads = 32
	runThreads  = 32
	// warmup is left out of the baseline.
	warmup = 3 * time.Second
)

// spec is what the clients drive.
func (w *world) spec(phase load.Phase) (load.AgentSpec, error) {
	workload, err := w.experiment.YCSB(w.experiment.Pools()[0])
	if err != nil {
		return load.AgentSpec{}, err
	}
	properties, err := w.experiment.Properties(w.experiment.Pools()[0])
	if err != nil {
		return load.AgentSpec{}, err
	}
	maps.Copy(properties, w.cluster.Properties())
	a := load.AgentSpec{Database: w.Database.Name(), Properties: properties, Spec: load.Spec{
		Phase: phase, Workload: workload, Threads: loadThreads, Seed: 1,
	}}
	if phase == load.PhaseRun {
		a.Spec.Threads, a.Spec.Warmup, a.Spec.Duration = runThreads, warmup, 24*time.Hour
	}
	return a, nil
}

// fill loads the records.
func (w *world) fill(ctx context.Context) error {
	spec, err := w.spec(load.PhaseLoad)
	if err != nil {
		return err
	}
	s, err := load.StartAgent(ctx, w.control, w.Exe, spec)
	if err != nil {
		return err
	}
	for range s.Intervals() {
	}
	if _, err = s.Wait(); err != nil {
		return fmt.Errorf("loading %d records: %w", w.Records, err)
	}
	return nil
}

// begin starts the clients and returns when they are warm.
func (w *world) begin(ctx context.Context) (*clients, error) {
	spec, err := w.spec(load.PhaseRun)
	if err != nil {
		return nil, err
	}
	s, err := load.StartAgent(ctx, w.control, w.Exe, spec)
	if err != nil {
		return nil, err
	}
	c := &clients{session: s, done: make(chan struct{}), news: make(chan struct{})}
	go func() {
		defer close(c.done)
		for i := range s.Intervals() {
			c.mu.Lock()
			c.seconds = append(c.seconds, i)
			close(c.news)
			c.news = make(chan struct{})
			c.mu.Unlock()
		}
	}()
	select {
	case <-s.Began():
		return c, nil
	case <-c.done:
	case <-ctx.Done():
	}
	_, err = c.end()
	return nil, fmt.Errorf("starting the clients: %w", err)
}

// end stops the clients.
func (c *clients) end() (load.Result, error) {
	c.session.Stop()
	<-c.done
	return c.session.Wait()
}

// during is what the clients saw in the seconds that touch a time. It waits until they
// have told of its end.
func (c *clients) during(ctx context.Context, from, to time.Time) (load.Totals, error) {
	for {
		c.mu.Lock()
		news, told := c.news, false
		var t load.Totals
		for _, i := range c.seconds {
			end := i.Start.Add(i.Length)
			told = told || !end.Before(to)
			if end.After(from) && i.Start.Before(to) {
				t.Counts.Add(i.Counts)
				t.Latency.Merge(i.Latency)
			}
		}
		c.mu.Unlock()
		if told {
			return t, nil
		}
		select {
		case <-news:
		case <-c.done:
			_, err := c.session.Wait()
			return t, fmt.Errorf("the clients ended early: %w", err)
		case <-ctx.Done():
			return t, context.Cause(ctx)
		}
	}
}
