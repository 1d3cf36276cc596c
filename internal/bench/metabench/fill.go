package metabench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/system/metadata"
	"skerry/internal/system/metadata/spread"
)

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
	fillStep    = 1_000_000
	fillBatch   = 500 // creations in a request
	fillClients = 8
)

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
