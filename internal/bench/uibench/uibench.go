// Package uibench measures what the dashboard costs a run, and how soon a browser hears of an
// event: a feed of made-up seconds, the server, and clients that read as browsers do.
package uibench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/event"
	"skerry/internal/link"
	"skerry/internal/record"
	"skerry/internal/run/live"
	"skerry/internal/serve"
)

// Options say how large the cloud is and how many look.
type Options struct {
	Nodes    int // in a full mesh up to 100, else in a star
	Browsers int
	// Time is how long each part takes.
	Time time.Duration
	// Scrape lets Prometheus read the metrics once a second.
	Scrape bool
}

// Result is what was measured.
type Result struct {
	Nodes    int  `json:"nodes"`
	Links    int  `json:"links"`
	Browsers int  `json:"browsers"`
	Scrape   bool `json:"scrape"`
	// FeedCores is the CPU of a run that tells of itself while nobody looks; ServedCores that of
	// run, server and clients together while all look.
	FeedCores   float64 `json:"feed_cores"`
	ServedCores float64 `json:"served_cores"`
	// Hear is from when an event is recorded to when a browser has it: median and worst of all.
	HearMedianMS float64 `json:"hear_median_ms"`
	HearWorstMS  float64 `json:"hear_worst_ms"`
	Events       int     `json:"events"`
}

// Run measures.
func Run(ctx context.Context, o Options) (r Result, err error) {
	dir, err := os.MkdirTemp("", "skerry-uibench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := record.Create(dir, record.Run{Name: "bench", Plan: []record.Planned{{ID: 1, Cell: 1, Repetition: 1}}})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	log := slog.New(slog.DiscardHandler)
	feed := live.New(live.Run{Name: "bench", Planned: 1})
	socket, err := live.Listen(w.Dir(), feed, log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, socket.Close()) }()
	c := newCloud(o.Nodes)
	c.begin(feed)
	r = Result{Nodes: o.Nodes, Links: len(c.links), Browsers: o.Browsers, Scrape: o.Scrape}
	if r.FeedCores, err = cores(func() error { return c.tell(ctx, feed, o.Time, nil) }); err != nil {
		return r, err
	}
	if err := os.WriteFile(filepath.Join(dir, "dashboard.html"), nil, 0o600); err != nil { // clients draw nothing
		return r, err
	}
	s, err := serve.New(serve.Config{Runs: dir, Log: log, Page: os.DirFS(dir)})
	if err != nil {
		return r, err
	}
	l, err := serve.Listen("127.0.0.1:0", "")
	if err != nil {
		return r, err
	}
	serving, stop := context.WithCancel(ctx)
	var served errgroup.Group
	served.Go(func() error { return s.Serve(serving, l) })
	h := &hearing{at: map[int]time.Time{}}
	r.ServedCores, err = cores(func() error {
		return watched(serving, serve.URL(l.Addr()), o, h, w.Dir(), func() error { return c.tell(ctx, feed, o.Time, h) })
	})
	stop()
	err = errors.Join(err, served.Wait())
	r.HearMedianMS, r.HearWorstMS, r.Events = h.summary()
	return r, err
}

// cores is the CPU that this process uses while work goes on.
func cores(work func() error) (float64, error) {
	before, began := cpu(), time.Now()
	err := work()
	return (cpu() - before).Seconds() / time.Since(began).Seconds(), err
}

func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cloud is nodes and links that tell made-up figures.
type cloud struct {
	live.Cloud
	links []live.Link
	rows  []record.NodeSecond
}

// meshMost is as many nodes as are joined each with each.
const meshMost = 100

func newCloud(nodes int) *cloud {
	c := &cloud{}
	q := link.Quality{Latency: 20 * time.Millisecond}
	name := func(i int) string { return fmt.Sprintf("node-%d", i) }
	for i := range nodes {
		c.Sites = append(c.Sites, live.Site{Name: name(i), Lat: float64(i%120 - 60), Lon: float64(i%360 - 180), Located: true})
		c.Nodes = append(c.Nodes, live.Node{Name: name(i), Site: name(i), Role: "data"})
		c.rows = append(c.rows, record.NodeSecond{Node: name(i), CPU: 0.123456, Memory: 123456789, RxBytes: 1 << 20, TxBytes: 1 << 20})
		for j := range i {
			if nodes <= meshMost || j == 0 {
				c.links = append(c.links, live.NewLink(name(j)+"~"+name(i), name(j), name(i), q, q))
			}
		}
	}
	c.Links = c.links
	return c
}

func (c *cloud) begin(f *live.Feed) {
	f.Begin(live.Trial{ID: 1, Number: 1, Database: "none", LimitS: 60})
	f.Cloud(c.Cloud)
	f.Measuring(time.Now(), func(context.Context, event.Event) (record.Event, error) { return record.Event{}, live.ErrNotMeasuring })
}

// eventEvery is how often the made-up trial has an event.
const eventEvery = 250 * time.Millisecond

// tell tells seconds as a trial does, and events.
func (c *cloud) tell(ctx context.Context, f *live.Feed, d time.Duration, h *hearing) error {
	end, second, happens := time.After(d), time.NewTicker(time.Second), time.NewTicker(eventEvery)
	defer second.Stop()
	defer happens.Stop()
	id := 0
	for t := int64(0); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-second.C:
			for i := range c.rows {
				c.rows[i].T = t
			}
			f.Stage("12345 ops/s, p95 39.2 ms, 0 failed")
			f.Second(record.Second{T: t, Length: 1, OK: 12345, ServiceP50: 1234.5, ResponseP99: 23456.7})
			f.Nodes(slices.Clone(c.rows))
			t++
		case <-happens.C:
			if h == nil || len(c.links) == 0 {
				continue
			}
			id++
			h.told(id)
			f.Links([]link.Change{{ID: c.links[id%len(c.links)].ID, AB: &link.Quality{Down: id%2 == 0}}})
			f.Event(record.Event{ID: id, Kind: "link_down", State: record.EventActive, Message: "made up"})
		}
	}
}

// hearing is when events were told, and how long they took to be heard.
type hearing struct {
	mu   sync.Mutex
	at   map[int]time.Time
	took []time.Duration
}

func (h *hearing) told(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[id] = time.Now()
}

func (h *hearing) heard(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, ok := h.at[id]; ok {
		h.took = append(h.took, time.Since(at))
	}
}

func (h *hearing) summary() (median, worst float64, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.took) == 0 {
		return 0, 0, 0
	}
	slices.Sort(h.took)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return ms(h.took[len(h.took)/2]), ms(h.took[len(h.took)-1]), len(h.took)
}

// watched does work while browsers look.
func watched(ctx context.Context, url string, o Options, h *hearing, dir string, work func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all errgroup.Group
	name := filepath.Base(dir)
	for range o.Browsers {
		all.Go(func() error { return ignore(ctx, browse(ctx, url+"api/runs/"+name+"/live", h)) })
	}
	if o.Scrape {
		all.Go(func() error { return ignore(ctx, scrape(ctx, url+"metrics")) })
	}
	err := work()
	cancel()
	return errors.Join(err, all.Wait())
}

// ignore leaves out what follows from the end.
func ignore(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func get(ctx context.Context, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("%s: %s", url, answer.Status), answer.Body.Close())
	}
	return answer, err
}

// browse reads the feed.
func browse(ctx context.Context, url string, h *hearing) error {
	answer, err := get(ctx, url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewReaderSize(answer.Body, 1<<16)
	for kind := ""; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if k, ok := strings.CutPrefix(line, "event: "); ok {
			kind = strings.TrimSpace(k)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && kind == string(live.KindEvent) {
			if at := strings.Index(data, `"id":`); at >= 0 {
				id := 0
				_, _ = fmt.Sscanf(data[at:], `"id":%d`, &id)
				h.heard(id)
			}
		}
	}
}

// scrape reads the metrics once a second, as Prometheus does.
func scrape(ctx context.Context, url string) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		answer, err := get(ctx, url)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return errors.Join(err, answer.Body.Close())
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
	}
}

// Text writes the result as a table.
func (r Result) Text(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%d nodes, %d links: telling costs %.2f %% of a core while nobody looks;\n"+
		"with %d browsers%s run, server and clients together take %.2f %%.\n"+
		"A browser has an event %.1f ms after it was recorded (median of %d; worst %.1f ms).\n",
		r.Nodes, r.Links, 100*r.FeedCores, r.Browsers, map[bool]string{true: " and Prometheus every second"}[r.Scrape], 100*r.ServedCores, r.HearMedianMS, r.Events, r.HearWorstMS)
	return err
}
