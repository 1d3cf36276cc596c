package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/link"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
)

// fault is a fault and its repair.
type fault struct {
	name  string
	apply func() error
	mend  func() error
	// lost is the cloud whose database is lost. Until it is rebuilt, the other cloud must have no fault, because Hydra
	// does not tolerate both.
	lost string
}

// breakThings injects one or two random faults at a time until the time is over, and repairs all of them.
func (w *world) breakThings(r *rand.Rand, length time.Duration) {
	w.t.Helper()
	began := time.Now()
	for n := 1; time.Since(began) < length; n++ {
		time.Sleep(between(r, 100*time.Millisecond, 2*time.Second)) // without a fault
		faults := []fault{w.fault(r)}
		if r.IntN(3) == 0 {
			if other := w.fault(r); other.name != faults[0].name && (other.lost == "" || faults[0].lost == "") {
				faults = append(faults, other)
			}
			if last := len(faults) - 1; faults[last].lost != "" { // the fault first waits for a recovery
				faults[0], faults[last] = faults[last], faults[0]
			}
		}
		held := between(r, 50*time.Millisecond, 5*time.Second)
		w.faults += len(faults)
		for _, f := range faults {
			w.t.Logf("%6.1f s: fault %d: %s for %s", time.Since(began).Seconds(), n, f.name, held.Round(time.Millisecond))
			if err := f.apply(); err != nil {
				w.t.Fatalf("%s: %v", f.name, err)
			}
		}
		time.Sleep(held)
		var mending errgroup.Group // concurrently, because a restarted process may need a disconnected one
		for _, f := range faults {
			mending.Go(func() error {
				if err := f.mend(); err != nil {
					return fmt.Errorf("mending %s: %w", f.name, err)
				}
				return nil
			})
		}
		if err := mending.Wait(); err != nil {
			w.t.Fatal(err)
		}
		for _, f := range faults {
			if f.lost != "" {
				w.t.Logf("the database of %s serves %.1f s later", f.lost, w.awaitRecovery(f.lost).Seconds())
			}
		}
	}
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// fault selects a random fault.
func (w *world) fault(r *rand.Rand) fault {
	states := w.deployed.States()
	cloud := w.layout.Clouds[r.IntN(len(w.layout.Clouds))]
	var members []deploy.State
	for _, s := range states {
		if s.Kind == deploy.Member || s.Kind == deploy.Witness {
			members = append(members, s)
		}
	}
	one := members[r.IntN(len(members))]
	whichever := states[r.IntN(len(states))]
	kinds := []struct {
		name   string
		weight int
		draw   func() fault
	}{
		{"kill", 2, func() fault {
			return w.kill("kill "+one.Name, func(s deploy.Service) bool { return s.Name == one.Name })
		}},
		{"kill", 1, func() fault {
			return w.kill("kill "+whichever.Name, func(s deploy.Service) bool { return s.Name == whichever.Name })
		}},
		{"kill", 1, func() fault {
			return w.kill("kill all of "+cloud.Name, func(s deploy.Service) bool { return s.Cloud == cloud.Name })
		}},
		{"pause", 1, func() fault { return w.pause(one) }},
		{"cut", 1, func() fault {
			return w.cut("cut off "+cloud.Name, link.Quality{Down: true}, true, func(site, _ string) bool { return site == cloud.Name })
		}},
		{"cut", 1, func() fault {
			return w.cut("cut off "+one.Node, link.Quality{Down: true}, true, func(_, node string) bool { return node == one.Node })
		}},
		{"cut", 1, func() fault {
			return w.cut("silence "+one.Node, link.Quality{Down: true}, false, func(_, node string) bool { return node == one.Node })
		}},
		{"loss", 1, func() fault {
			return w.cut("20 % loss around "+cloud.Name, link.Quality{Loss: 0.2}, true, func(site, _ string) bool { return site == cloud.Name })
		}},
		{"lead", 1, func() fault { return w.handOver(one.Name) }},
		{"clock", 1, func() fault { return w.jump(r, whichever.Name, whichever) }},
		{"clock", 1, func() fault { return w.jump(r, "all", states...) }},
		{"log", 2, func() fault { return w.exchange(cloud) }},
		{"back", 2, func() fault { return w.goBack(cloud) }},
		{"lose", 1, func() fault { return w.lose(cloud) }},
		{"server", 1, func() fault {
			if w.databases[cloud.Name] == nil {
				return w.lose(cloud)
			}
			return w.restart(cloud)
		}},
	}
	only := strings.Fields(os.Getenv("SKERRY_CHAOS_FAULTS"))
	var draws []func() fault
	for _, k := range kinds {
		if len(only) == 0 || slices.Contains(only, k.name) {
			draws = slices.Concat(draws, slices.Repeat([]func() fault{k.draw}, k.weight))
		}
	}
	if len(draws) == 0 {
		w.t.Fatalf("unknown faults %v", only)
	}
	return draws[r.IntN(len(draws))]()
}

func (w *world) kill(name string, which func(deploy.Service) bool) fault {
	return fault{
		name:  name,
		apply: func() error { return w.deployed.Kill(which) },
		mend:  func() error { return w.deployed.Revive(w.t.Context(), which) },
	}
}

// pause stops a process and resumes it, unless it was killed and replaced meanwhile.
func (w *world) pause(s deploy.State) fault {
	signal := func(n syscall.Signal) func() error {
		return func() error {
			if err := syscall.Kill(s.PID, n); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
			return nil
		}
	}
	return fault{name: "pause " + s.Name, apply: signal(syscall.SIGSTOP), mend: signal(syscall.SIGCONT)}
}

// cut changes the links from the selected nodes to others, in both directions or only outwards.
func (w *world) cut(name string, q link.Quality, both bool, inside func(site, node string) bool) fault {
	sites := map[string]string{}
	for _, h := range w.lab.Hosts() {
		sites[h.Name()] = h.Site()
	}
	worse := func(from link.Quality) *link.Quality {
		from.Down, from.Loss = q.Down, q.Loss
		return &from
	}
	var change, back []link.Change
	for _, l := range w.lab.Links() {
		a, b := inside(sites[l.A], l.A), inside(sites[l.B], l.B)
		if a == b {
			continue
		}
		c, old := link.Change{ID: l.ID}, link.Change{ID: l.ID, AB: &l.BaseAB, BA: &l.BaseBA}
		if both || a {
			c.AB = worse(l.BaseAB)
		}
		if both || b {
			c.BA = worse(l.BaseBA)
		}
		change, back = append(change, c), append(back, old)
	}
	return fault{
		name:  name,
		apply: func() error { return w.lab.Set(w.t.Context(), change) },
		mend:  func() error { return w.lab.Set(context.WithoutCancel(w.t.Context()), back) },
	}
}

// handOver requests another leader, which may refuse.
func (w *world) handOver(to string) fault {
	return fault{name: "hand over to " + to, mend: func() error { return nil }, apply: func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		var at []string
		for _, c := range w.layout.Clouds {
			for _, h := range c.Members {
				at = append(at, deploy.HostPort(h, deploy.PortAPI))
			}
		}
		c := w.data(at...)
		defer c.Close()
		if err := c.TransferLeader(ctx, to); errors.Is(err, hydraclient.ErrBadRequest) && to != w.layout.Witness.Name() {
			return err
		}
		return nil
	}}
}

// restart kills a cloud's database server.
func (w *world) restart(c deploy.CloudNodes) fault {
	d := w.databases[c.Name]
	return fault{
		name:  "kill the database of " + c.Name,
		apply: func() error { return d.Halt(w.t.Context(), c.Edge, database.Abrupt) },
		mend:  func() error { return d.Revive(w.t.Context(), c.Edge) },
	}
}

// lose destroys a cloud's database, which is rebuilt from the other's.
func (w *world) lose(c deploy.CloudNodes) fault {
	which := func(s deploy.Service) bool { return s.Cloud == c.Name && s.Kind == deploy.Member }
	k := w.kill("lose the database of "+c.Name, which)
	k.lost = c.Name
	lost := k.apply
	k.apply = func() error {
		for _, other := range w.layout.Clouds {
			if other.Name != c.Name {
				w.awaitRecovery(other.Name) // it has the contents of the lost database
			}
		}
		if err := lost(); err != nil {
			return err
		}
		return w.discard(c)
	}
	return k
}

// discard removes all data of a cloud's database.
func (w *world) discard(c deploy.CloudNodes) error {
	o := w.operators[c.Name]
	if w.databases[c.Name] != nil {
		return o.insist(w.t.Context(), func(db *sql.DB) error { return o.empty(w.t.Context(), db) })
	}
	o.file.Lock()
	defer o.file.Unlock()
	files, err := filepath.Glob(sqliteFile(c) + "*")
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no database", c.Name)
	}
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// sqliteFile is the database file of a cloud without a server.
func sqliteFile(c deploy.CloudNodes) string { return filepath.Join(c.Members[0].Dir(), "hydra.db") }
