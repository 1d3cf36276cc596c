package replica_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/consensus"
	"skerry/systems/metadata"
	"skerry/systems/metadata/replica"
	"skerry/systems/metadata/store"
)

// patience is the timeout of every operation on a busy machine.
const patience = 60 * time.Second

// server is a replica that can be stopped and restarted.
type server struct {
	t     *testing.T
	dir   string
	cfg   consensus.Config
	o     replica.Options
	log   *replica.Log
	store *store.Store
}

func (s *server) start() {
	s.t.Helper()
	state := store.NewState()
	l, _, err := replica.Open(context.Background(), s.dir, state, s.cfg, s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cfg.Listener = nil
	s.log, s.store = l, store.New(state, l)
}

func (s *server) stop() {
	s.t.Helper()
	if s.log == nil {
		return
	}
	if err := s.log.Close(); err != nil {
		s.t.Error(err)
	}
	s.log = nil
}

// group starts three replicas.
func group(t *testing.T, maxLog int64, o replica.Options) []*server {
	t.Helper()
	var members []consensus.Member
	var listeners []net.Listener
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		name := fmt.Sprintf("m%d", i+1)
		members = append(members, consensus.Member{ID: consensus.MemberID(name), Name: name, Addr: l.Addr().String(), Role: consensus.Voter})
	}
	var servers []*server
	for i, m := range members {
		s := &server{t: t, dir: filepath.Join(t.TempDir(), m.Name), o: o, cfg: consensus.Config{
			Cluster: "tree", Self: m, Members: members, Listener: listeners[i], MaxLog: maxLog,
		}}
		s.start()
		t.Cleanup(s.stop)
		servers = append(servers, s)
	}
	return servers
}

// leader waits until one of the servers leads.
func leader(t *testing.T, servers []*server) *server {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		changed := servers[0].log.Node().Changed()
		lead, ok := servers[0].log.Node().Leader()
		if i := slices.IndexFunc(servers, func(s *server) bool { return s.cfg.Self.ID == lead.ID }); ok && i >= 0 {
			return servers[i]
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		}
	}
	t.Fatal("no leader")
	return nil
}

func do(s *store.Store, line string) metadata.Result {
	c, err := metadata.Parse(line)
	if err != nil {
		return metadata.Result{Err: err}
	}
	return s.Do(context.Background(), []metadata.Command{c})[0]
}

// must repeats a command until a majority answers.
func must(t *testing.T, s *server, line string) metadata.Result {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r := do(s.store, line)
		if r.Err == nil || !errors.Is(r.Err, metadata.ErrUnavailable) {
			if r.Err != nil {
				t.Fatalf("%s: %v", line, r.Err)
			}
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", line, r.Err)
		}
	}
}

// find returns all entries of a replica with their ids.
func find(t *testing.T, s *server) []string {
	t.Helper()
	var all []string
	for after := ""; ; {
		c := metadata.Command{Op: metadata.Find, Path: "/", MaxDepth: -1, After: after, Limit: metadata.MaxLimit}
		r := s.store.Do(context.Background(), []metadata.Command{c})[0]
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, e := range r.Entries {
			all = append(all, fmt.Sprintf("%s %d %d", e.Name, e.ID, e.Modified))
		}
		if after = r.Next; after == "" {
			return all
		}
	}
}

// TestTakeover stops the leader while clients create directories, and looks for all acknowledged ones.
func TestTakeover(t *testing.T) {
	servers := group(t, 0, replica.Options{})
	must(t, servers[0], "mkdir /d")
	victim := leader(t, servers)
	const clients, before, after = 8, 200, 200
	var acknowledged, late atomic.Int64
	var made sync.Map
	var ended atomic.Bool
	half := make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	deadline := time.Now().Add(patience)
	stores := []*store.Store{servers[0].store, servers[1].store, servers[2].store}
	for c := range clients {
		all.Go(func() {
			for i := 0; late.Load() < after && time.Now().Before(deadline); i++ {
				path := fmt.Sprintf("/d/%d-%d", c, i)
				r := do(stores[(c+i)%3], "mkdir "+path)
				if r.Err != nil && !errors.Is(r.Err, metadata.ErrUnavailable) {
					t.Errorf("mkdir %s: %v", path, r.Err)
				}
				if r.Err != nil {
					continue
				}
				made.Store(path, true)
				if ended.Load() {
					late.Add(1)
				}
				if acknowledged.Add(1) == before {
					once.Do(func() { close(half) })
				}
			}
		})
	}
	select {
	case <-half:
	case <-time.After(patience):
		t.Error("the clients made no progress")
	}
	victim.stop()
	ended.Store(true)
	all.Wait()
	if late.Load() < after {
		t.Fatalf("%d directories were created after the leader stopped", late.Load())
	}
	victim.start()
	lists := make([][]string, len(servers))
	for i, s := range servers {
		must(t, s, "stat /d") // it may still look for a leader
		lists[i] = find(t, s)
		held := make(map[string]bool)
		for _, line := range lists[i] {
			path, _, _ := strings.Cut(line, " ")
			held[path] = true
		}
		made.Range(func(path, _ any) bool {
			if !held[path.(string)] {
				t.Errorf("%s was acknowledged, but %s has lost it", path, s.cfg.Self.Name)
			}
			return true
		})
	}
	for _, l := range lists[1:] {
		if d := cmp.Diff(lists[0], l); d != "" {
			t.Errorf("replicas differ: %s", d)
		}
	}
}

// TestReadsAreLinearizable reads from each replica what another has acknowledged.
func TestReadsAreLinearizable(t *testing.T) {
	servers := group(t, 0, replica.Options{})
	for i := range 60 {
		path := fmt.Sprintf("/%d", i)
		must(t, servers[i%3], "mkdir "+path)
		must(t, servers[(i+1)%3], "stat "+path)
		must(t, servers[(i+2)%3], "rmdir "+path)
		if r := do(servers[i%3].store, "stat "+path); !errors.Is(r.Err, metadata.ErrNotFound) {
			t.Fatalf("%s was removed at another replica: %v", path, r.Err)
		}
	}
}

// TestMinorityRefuses sends commands to an isolated replica.
func TestMinorityRefuses(t *testing.T) {
	servers := group(t, 0, replica.Options{})
	must(t, servers[0], "mkdir /a")
	servers[1].stop()
	servers[2].stop()
	servers[0].stop()
	servers[0].o.Patience = 300 * time.Millisecond
	servers[0].start()
	for _, line := range []string{"mkdir /b", "ls /"} {
		if r := do(servers[0].store, line); !errors.Is(r.Err, metadata.ErrUnavailable) {
			t.Errorf("%s without a majority: %v", line, r.Err)
		}
	}
	servers[1].start()
	must(t, servers[1], "mkdir /c")
	must(t, servers[0], "stat /c")
	must(t, servers[0], "stat /a")
}

// TestLaggingReplicaCatchesUp compacts the log beyond what a replica has. The replica gets another's state, and
// keeps it over a restart.
func TestLaggingReplicaCatchesUp(t *testing.T) {
	servers := group(t, 1<<20, replica.Options{SnapshotBytes: 256 << 10})
	must(t, servers[0], "mkdir /d")
	servers[2].stop()
	text := strings.Repeat("x", 64<<10)
	for i := range 60 {
		must(t, servers[i%2], fmt.Sprintf("write /d/%d %s", i%7, text))
	}
	for deadline := time.Now().Add(patience); ; {
		if s := servers[0].log.Node().Status(); s.First > 3 || time.Now().After(deadline) {
			if s.First <= 3 {
				t.Fatalf("the log was not compacted: %+v", s)
			}
			break
		}
		must(t, servers[0], "write /d/0 "+text)
	}
	servers[2].start()
	for deadline := time.Now().Add(patience); servers[2].log.Status().SnapshotIndex == 0; {
		must(t, servers[2], "stat /d/6") // it has the previous state on disk
		if time.Now().After(deadline) {
			t.Fatalf("no state was loaded: %+v", servers[2].log.Status())
		}
	}
	want := find(t, servers[0])
	for _, s := range []*server{servers[2], servers[0]} {
		s.stop()
		s.start()
		must(t, s, "stat /d/6")
		if d := cmp.Diff(want, find(t, s)); d != "" {
			t.Errorf("%s differs: %s", s.cfg.Self.Name, d)
		}
	}
}
