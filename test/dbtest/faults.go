package dbtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
)

const dyingMessage = "last line of the server"

// A server that never gets ready is observed for at least minNotReadyWait after its start, and for up to
// maxNotReadyWait while the other servers are not ready either.
const (
	minNotReadyWait = 3 * time.Second
	maxNotReadyWait = 8 * minNotReadyWait
)

var errWaitedEnough = errors.New("enough time has passed")

// testFaults starts clusters that cannot start. Each start must return a clear error and leave nothing behind.
func (s *suite) testFaults(t *testing.T) {
	s.hosts = s.newHosts(t)
	bad := s.hosts[s.Nodes-1]

	t.Run("a server that exits", func(t *testing.T) {
		bad.override("echo "+dyingMessage+"; exit 3", nil)
		defer bad.override("", nil)
		err := s.startBadly(t.Context(), t)
		s.expectWords(t, err, dyingMessage, bad.Name(), "exit status 3")
	})
	t.Run("a server that never gets ready", func(t *testing.T) {
		defer bad.override("", nil)
		var err error
		for wait := minNotReadyWait; wait <= maxNotReadyWait && (err == nil || !strings.Contains(err.Error(), dyingMessage)); wait *= 2 {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			bad.override("echo "+dyingMessage+"; exec sleep 1000", func(host.Process) {
				time.AfterFunc(wait, func() { cancel(errWaitedEnough) })
			})
			err = s.startBadly(ctx, t)
		}
		s.expectWords(t, err, dyingMessage, bad.Name())
	})
	t.Run("a port in use", func(t *testing.T) {
		if s.Port == 0 {
			t.Skip("no fixed port")
		}
		var l net.Listener
		if err := bad.Host.(host.NamespaceHost).Do(func() (err error) {
			l, err = net.Listen("tcp4", net.JoinHostPort(bad.Addr(), fmt.Sprint(s.Port)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		err := s.startBadly(t.Context(), t)
		s.expectWords(t, err, fmt.Sprint("port ", s.Port), bad.Name())
		if advice.Of(err) == "" {
			t.Errorf("no advice with %v", err)
		}
	})
	t.Run("a canceled start", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		env := s.newEnv(t)
		env.Progress = func(string) { cancel() }
		c, err := s.db.Start(ctx, env)
		if err == nil {
			t.Fatalf("the cluster was started; stopping it: %v", c.Stop(t.Context()))
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		s.checkNothingLeft(t)
	})
}

func (s *suite) startBadly(ctx context.Context, t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	c, err := s.db.Start(ctx, s.newEnv(t))
	if err == nil {
		t.Fatalf("the cluster was started; stopping it: %v", c.Stop(t.Context()))
	}
	s.checkNothingLeft(t)
	return err
}

func (s *suite) expectWords(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not contain %q: %v", w, err)
		}
	}
}

const (
	// A row has diskFields fields of diskField bytes. Large rows fill a disk sooner.
	diskFields = 10
	diskField  = 1000
	// tooMuch is the amount of loaded data as a multiple of the disks' size.
	overloadFactor = 3
	// giveUp is the time after which a load without acknowledged writes is stopped.
	giveUp = 10 * time.Second
	// shortDisk is the maximum size of a disk that the short form of the suite fills.
	shortDisk = 4 << 20
)

// testDiskFull fills the nodes' disks. The error must name the full nodes, and the cluster must stop.
func (s *suite) testDiskFull(t *testing.T) {
	switch {
	case s.DiskFull == 0:
		t.Skip("the database writes nothing to disk, or DiskFull is not set")
	case s.DiskFull > shortDisk && os.Getenv("SKERRY_REQUIRE") != "" && os.Getenv("SKERRY_LONG") == "":
		t.Skip("takes half a minute: make conformance fills the disks of all databases")
	}
	testkit.Need(t, testkit.Root)
	s.hosts = s.newHosts(t)
	var nodes []host.Host
	for _, h := range s.hosts[:s.Nodes] {
		nodes = append(nodes, h)
		if err := unix.Mount("tmpfs", h.Dir(), "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", s.DiskFull)); err != nil {
			t.Fatalf("mounting a small disk: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(h.Dir(), unix.MNT_DETACH); err != nil {
				t.Errorf("unmounting a small disk: %v", err)
			}
		})
	}
	options := s.Options
	defer func() { s.Options = options }()
	s.Options = s.withOptions(s.DiskOptions)
	cluster := s.startCluster(t)
	if full := database.ExplainDiskFull(t.Context(), errors.New("before the load"), nodes); errors.Is(full, database.ErrDiskFull) {
		t.Fatalf("disks of %d bytes are too small for this test: %v", s.DiskFull, full)
	}
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	p, _ := ycsb.Builtin("a")
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{
		"fieldcount": fmt.Sprint(diskFields), "fieldlength": fmt.Sprint(diskField),
		"recordcount": fmt.Sprint(overloadFactor * int64(s.Nodes) * s.DiskFull / (diskFields * diskField)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	spec := load.Spec{Phase: load.PhaseLoad, Workload: w, Threads: workers, Seed: 1, Timeout: giveUp / 2, GiveUp: giveUp}
	r, err := load.Run(ctx, spec, s.clientOpener(cluster), nil)
	if !errors.Is(err, load.ErrIncomplete) {
		t.Errorf("%d rows were acknowledged on disks of %d bytes: %v", r.OK, s.DiskFull, err)
	}
	err = database.ExplainDiskFull(ctx, errors.Join(err, cluster.Err()), nodes)
	t.Logf("the load returned: %v", err)
	if !errors.Is(err, database.ErrDiskFull) || advice.Of(err) == "" || !namesAnyNode(err, s.hostNames(0, s.Nodes)) {
		t.Errorf("the error lacks the node with the full disk or advice: %v", err)
	}
	if err := cluster.Stop(ctx); err != nil {
		t.Errorf("stopping the cluster: %v", err)
	}
	s.checkNothingLeft(t)
}

func namesAnyNode(err error, nodes []string) bool {
	for _, n := range nodes {
		if strings.Contains(err.Error(), n) {
			return true
		}
	}
	return false
}

const unknownOption = "no_such_option"

func (s *suite) testOptions(t *testing.T) {
	if err := s.db.Check(s.Nodes, s.Options); err != nil {
		t.Fatalf("checking the options of this test: %v", err)
	}
	for _, bad := range append([]database.Options{{unknownOption: 1}}, s.BadOptions...) {
		if err := s.db.Check(s.Nodes, s.withOptions(bad)); err == nil {
			t.Errorf("options %v were accepted", bad)
		}
	}
	if n := s.can.MinNodes; n > 1 && s.Options == nil {
		if err := s.db.Check(n-1, nil); err == nil {
			t.Errorf("%d nodes were accepted, the least is %d", n-1, n)
		}
	}
	s.hosts = s.newHosts(t)
	env := s.newEnv(t)
	env.Options = s.withOptions(database.Options{unknownOption: 1})
	if c, err := s.db.Start(t.Context(), env); err == nil {
		t.Errorf("a cluster with an unknown option was started; stopping it: %v", c.Stop(t.Context()))
	}
	s.checkNothingLeft(t)
}

func (s *suite) withOptions(more database.Options) database.Options {
	o := maps.Clone(s.Options)
	if o == nil {
		o = make(database.Options)
	}
	maps.Copy(o, more)
	return o
}

func (s *suite) testStatus(t *testing.T, cluster database.Cluster) {
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	if err := cluster.Ready(ctx); err != nil {
		t.Errorf("the cluster has started but is not ready: %v", err)
	}
	if err := cluster.Err(); err != nil {
		t.Errorf("the cluster has failed: %v", err)
	}
	if len(cluster.Properties()) == 0 {
		t.Error("no properties for clients")
	}
	s.expectMembers(t, cluster, s.hostNames(0, s.Nodes))
	logs := cluster.Logs()
	if len(logs) < s.Nodes {
		t.Errorf("%d logs of %d nodes: %v", len(logs), s.Nodes, logs)
	}
	for name, log := range logs {
		if _, err := log.On.Stat(ctx, log.Path); err != nil {
			t.Errorf("log %s: %v", name, err)
		}
	}
}

func (s *suite) hostNames(from, to int) []string {
	var names []string
	for _, h := range s.hosts[from:to] {
		names = append(names, h.Name())
	}
	return names
}

func (s *suite) expectMembers(t *testing.T, cluster database.Cluster, want []string) {
	t.Helper()
	members, err := cluster.Members(t.Context())
	if err != nil {
		t.Errorf("listing the members: %v", err)
		return
	}
	var got []string
	for _, m := range members {
		got = append(got, m.Node)
		if m.State == "" {
			t.Errorf("%s has no state", m.Node)
		}
		if m.Share < 0 || m.Share > 1.0001 {
			t.Errorf("%s owns %v of the data", m.Node, m.Share)
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
}
