package metabench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/procfs"
	"skerry/internal/system/metadata"
	"skerry/internal/system/metadata/spread"
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

// Filled is a directory with many entries.
type Filled struct {
	Servers int `json:"servers"`
	Entries int `json:"entries"` // as the directory itself tells
	// Steps are what was made one after the other.
	Steps []Step `json:"steps"`
	// Pages of 10,000 entries that list it all, the seconds that they took, and the longest's.
	Pages       int     `json:"pages"`
	ListSeconds float64 `json:"ls_s"`
	LongestPage float64 `json:"longest_page_s"`
}

// Step is a million entries, or what was left.
type Step struct {
	Entries  int     `json:"entries"` // that there are then
	Seconds  float64 `json:"seconds"` // that the step took
	Resident int64   `json:"resident_bytes"`
}

const (
	hotServers  = 3
	fillStep    = 1_000_000
	fillBatch   = 500 // creations in a request
	fillClients = 8
)

// shared are servers, processes, that share a tree. /hot is on all of them.
type shared struct {
	served []*served
	addrs  []string
	dirs   []string
	groups []*cgroup.Group
}

// share starts n servers, each with a share of a processor, 0 for no bound.
func (b *bench) share(ctx context.Context, n int, cores float64) (s *shared, err error) {
	s = &shared{}
	args := []string{"--root", "g1"}
	for i := range n {
		addr, err := freeAddress()
		if err != nil {
			return nil, err
		}
		s.addrs, args = append(s.addrs, addr), append(args, "--server", fmt.Sprintf("g%d=%s", i+1, addr))
	}
	var names []string
	for i, addr := range s.addrs {
		name := fmt.Sprintf("g%d", i+1)
		names = append(names, name)
		dir := b.room("hot-" + name)
		s.dirs = append(s.dirs, dir)
		one, err := b.start(ctx, dir, append([]string{"--listen", addr, "--cluster", name}, args...)...)
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.served = append(s.served, one)
		if cores > 0 {
			if err := s.bound(one, name, cores); err != nil {
				return nil, errors.Join(err, s.stop())
			}
		}
	}
	t, err := dialThin(ctx, s.addrs[0])
	if err == nil {
		defer t.conn.Close()
		err = t.do([]byte("mkdir /hot"))
	}
	if err == nil && n > 1 {
		err = t.do([]byte("delegate /hot " + strings.Join(names, ",")))
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// bound gives a server so much of a processor.
func (s *shared) bound(one *served, name string, cores float64) error {
	tree, err := cgroup.Open()
	if err != nil {
		return err
	}
	g := tree.Group(fmt.Sprintf("bench-%d/%s", os.Getpid(), name))
	s.groups = append(s.groups, g)
	if err := g.Create(); err != nil {
		return err
	}
	return errors.Join(g.LimitCPU(cores), g.Join(one.cmd.Process.Pid))
}

func (s *shared) stop() (err error) {
	for _, one := range s.served {
		err = errors.Join(err, one.stop(syscall.SIGTERM))
	}
	for _, dir := range s.dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	for _, g := range s.groups {
		err = errors.Join(err, g.Remove())
	}
	return err
}

// used is the processor time of the servers, and their memory.
func (s *shared) used() (busy time.Duration, resident int64, err error) {
	for _, one := range s.served {
		stat, problem := procfs.ReadStat(one.cmd.Process.Pid)
		busy, resident, err = busy+stat.CPU, resident+stat.Resident, errors.Join(err, problem)
	}
	return busy, resident, err
}

// conns are a client's, one to each server.
type conns []*thin

func (s *shared) dial(ctx context.Context) (all conns, err error) {
	for _, addr := range s.addrs {
		t, err := dialThin(ctx, addr)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, t)
	}
	return all, nil
}

func (c conns) close() (err error) {
	for _, t := range c {
		err = errors.Join(err, t.conn.Close())
	}
	return err
}

// of is the number of the server that has an entry of /hot.
func (c conns) of(name []byte) int { return metadata.PartOf(string(name), len(c)) }

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

// busy is the processor time that the servers and this process have had.
func (s *shared) busy() (servers, own time.Duration, err error) {
	servers, _, err = s.used()
	self, problem := procfs.ReadStat(os.Getpid())
	return servers, self.CPU, errors.Join(err, problem)
}

// filled makes entries in a directory on servers, and lists it.
func (b *bench) filled(ctx context.Context, s *shared) (f Filled, err error) {
	f.Servers = len(s.served)
	for made := 0; made < b.Entries; {
		from := made
		made = min(made+fillStep, b.Entries)
		b.say("filling the directory: %d of %d", made, b.Entries)
		began := time.Now()
		g, gctx := errgroup.WithContext(ctx)
		for i := range fillClients {
			g.Go(func() error {
				return s.fill(gctx, from+(made-from)*i/fillClients, from+(made-from)*(i+1)/fillClients)
			})
		}
		if err := g.Wait(); err != nil {
			return f, err
		}
		_, resident, err := s.used()
		if err != nil {
			return f, err
		}
		f.Steps = append(f.Steps, Step{Entries: made, Seconds: time.Since(began).Seconds(), Resident: resident})
	}
	b.say("listing the directory")
	c, err := spread.Connect(ctx, s.addrs[0])
	if err != nil {
		return f, err
	}
	defer c.Close()
	return f, f.list(ctx, c, b.Entries)
}

// fill makes the entries from one number to before another, many in a request.
func (s *shared) fill(ctx context.Context, from, to int) error {
	all, err := s.dial(ctx)
	if err != nil {
		return err
	}
	batches, n := make([][]byte, len(all)), make([]int, len(all))
	send := func(i int) error {
		if n[i] == 0 {
			return nil
		}
		err := all[i].do(batches[i])
		batches[i], n[i] = batches[i][:0], 0
		return err
	}
	for k := from; k < to && err == nil; k++ {
		name := fmt.Appendf(nil, "%09d", k)
		i := all.of(name)
		batches[i] = append(append(append(batches[i], "create /hot/"...), name...), '\n')
		if n[i]++; n[i] == fillBatch {
			err = errors.Join(send(i), ctx.Err())
		}
	}
	for i := range all {
		if err == nil {
			err = send(i)
		}
	}
	return errors.Join(err, all.close())
}

// errEntries is a directory that has not all entries that were made in it.
var errEntries = errors.New("entries are missing, or there twice")

// list lists the directory page by page; all that was made must be there, in order.
func (f *Filled) list(ctx context.Context, r *spread.Client, made int) error {
	stat := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: "/hot"}})[0]
	if stat.Err != nil {
		return stat.Err
	}
	f.Entries = int(stat.Entries[0].Size)
	seen, began := 0, time.Now()
	for page := (metadata.Command{Op: metadata.List, Path: "/hot", Limit: metadata.MaxLimit}); ; {
		at := time.Now()
		found := r.Do(ctx, []metadata.Command{page})[0]
		if found.Err != nil {
			return found.Err
		}
		f.Pages++
		f.LongestPage = max(f.LongestPage, time.Since(at).Seconds())
		for _, e := range found.Entries {
			if e.Name != fmt.Sprintf("%09d", seen) {
				return fmt.Errorf("%w: %s in the place of number %d", errEntries, e.Name, seen)
			}
			seen++
		}
		if page.After = found.Next; page.After == "" {
			break
		}
	}
	f.ListSeconds = time.Since(began).Seconds()
	if seen != made || f.Entries != made {
		return fmt.Errorf("%w: %d listed and %d told, of %d", errEntries, seen, f.Entries, made)
	}
	return nil
}
