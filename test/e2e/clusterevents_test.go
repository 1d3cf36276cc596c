package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skerry/internal/database/redis"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// freeze is an event that stops the process of the user's own server, and lets it run again.
func (s ownServer) freeze(timing string) string {
	pid := s.cmd.Process.Pid
	return fmt.Sprintf("events: [{%s, command: {do: 'kill -STOP %d && echo {{(index .Nodes 0).Node}} >frozen', undo: 'kill -CONT %d && touch thawed'}}]",
		timing, pid, pid)
}

// A command of an event stops the user's own server, and the undo repairs it: at the event's end, after Ctrl-C, and after
// kill -9 at the next start, before the table is dropped, which needs the server.
func TestCommandEventOnOwnServer(t *testing.T) {
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	s.addForeign()
	before := s.checksum()
	untouched := func(after string) {
		t.Helper()
		if got := s.checksum(); got != before {
			t.Errorf("after %s: contents of the server changed: %s, were %s", after, got, before)
		}
		if err := os.Remove(b.path("thawed")); err != nil {
			t.Errorf("after %s: no undo: %v", after, err)
		}
		if left, _ := filepath.Glob(b.path("data/*/*")); len(left) > 0 {
			t.Errorf("left behind after %s: %v", after, left)
		}
		_ = os.Remove(b.path("frozen"))
	}
	cluster := fmt.Sprintf("[%q]", s.addr)
	plan := b.run(0, "validate", b.write("own.yaml", onCluster(cluster, "stop: {time: 3s}", s.freeze("at: 500ms, for: 500ms"))))
	contains(t, plan.stdout.String(), "runs on this machine: event command, do: kill -STOP", "runs on this machine: event command, undo: kill -CONT")
	b.run(0, "run", b.path("own.yaml"))
	e := b.events()["command"]
	if e.State != record.EventReverted || len(e.Apply.Commands) != 1 || !strings.Contains(e.Apply.Commands[0].Text, s.addr) {
		t.Errorf("event %+v", e)
	}
	untouched("the event")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		r := b.command("run", b.write("own.yaml", onCluster(cluster, "stop: {time: 60s}", s.freeze("at: 500ms")))).start()
		b.await("the event", func() bool { return exists(b.path("frozen")) })
		r.signal(signal)
		r.wait()
		if signal == syscall.SIGKILL {
			next := b.run(0, "run", b.write("next.yaml", onCluster(cluster, brief)))
			contains(t, next.stderr.String(), "undid a command of a killed run: kill -STOP", "dropped the tables of a killed run: skerry_")
		}
		untouched(signal.String())
	}
}

// resizable is a Redis Cluster of the user: commands change its number of masters, and the first one has all slots.
func (b *bench) resizable(servers ...ownServer) (cluster string) {
	b.t.Helper()
	in, err := redis.New().Find("", "")
	if err != nil {
		b.t.Fatal(err)
	}
	var list strings.Builder
	for _, s := range servers {
		fmt.Fprintln(&list, strings.ReplaceAll(s.addr, ":", " "))
	}
	b.write("list", list.String())
	b.write("count", "2\n")
	b.write("scale.sh", strings.NewReplacer("CLI", in.Programs["redis-cli"]).Replace(`set -e
set -- "$1" $(head -n 1 list)
head -n "$1" list | tail -n +2 | while read -r host port; do CLI -h "$2" -p "$3" cluster meet "$host" "$port" "$((port + 10000))"; done
tail -n +"$(($1 + 1))" list | while read -r host port; do
  CLI -h "$2" -p "$3" cluster forget "$(CLI -h "$host" -p "$port" cluster myid)" || true
  CLI -h "$host" -p "$port" cluster reset
done
echo "$1" >count
echo "$1" >>counts
`))
	if err := servers[0].client.ClusterAddSlotsRange(b.t.Context(), 0, 16383).Err(); err != nil {
		b.t.Fatal(err)
	}
	host, port, _ := strings.Cut(servers[1].addr, ":")
	if err := servers[0].client.ClusterMeet(b.t.Context(), host, port).Err(); err != nil {
		b.t.Fatal(err)
	}
	b.awaitCluster(servers[:2])
	return "{servers_from: 'head -n $(cat count) list | tr \" \" :', ready: 'set -- $(head -n 1 list); " + in.Programs["redis-cli"] +
		" -h $1 -p $2 cluster info | grep -q cluster_state:ok', join: 'sh scale.sh {{.Count}}', leave: 'sh scale.sh {{.Count}}', timeout: 30s}"
}

// awaitCluster waits until the servers form a cluster: each one knows exactly the others and no server that has left.
func (b *bench) awaitCluster(servers []ownServer) {
	b.t.Helper()
	known := fmt.Sprintf("cluster_known_nodes:%d\r", len(servers))
	for _, s := range servers {
		b.await("the cluster at "+s.addr, func() bool {
			info, err := s.client.ClusterInfo(b.t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, known)
		})
	}
}

// The events join and leave change the number of servers of the user's own cluster by its commands. The cluster has its
// servers back after the trial, and at the next start after kill -9.
func TestOwnClusterGrowsAndShrinks(t *testing.T) {
	b := newBench(t)
	var servers []ownServer
	for range 3 {
		addr := testkit.Address(t)
		host, _, _ := strings.Cut(addr, ":")
		servers = append(servers, b.startServer(addr, "--cluster-enabled", "yes", "--cluster-announce-ip", host))
	}
	cluster := b.resizable(servers...)
	counts := func(want string) {
		t.Helper()
		got, err := os.ReadFile(b.path("counts"))
		if err != nil || strings.Join(strings.Fields(string(got)), " ") != want {
			t.Errorf("the cluster had %q servers, want %s: %v", got, want, err)
		}
		if err := os.Remove(b.path("counts")); err != nil {
			t.Error(err)
		}
	}
	file := b.write("own.yaml", onCluster(cluster, "stop: {time: 30s, after_events: 500ms}",
		"events: [{at: 500ms, join: {count: 1}}, {when: completed, after: 500ms, leave: {count: 2}}]"))
	contains(t, b.run(0, "validate", file).stdout.String(), "runs on this machine: cluster, join: sh scale.sh {{.Count}}")
	b.run(0, "run", file)
	for kind, e := range b.events() {
		if e.Effect == nil || e.Effect.Member == "" {
			continue
		}
		if e.State != record.EventActive || e.Apply.Accepted == nil || e.Apply.Completed == nil || e.Apply.Completed.NS <= e.Apply.Accepted.NS {
			t.Errorf("%s: %+v (%s)", kind, e.Apply, e.Error)
		}
	}
	counts("3 1 2")
	if left, _ := filepath.Glob(b.path("data/clusters/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b.awaitCluster(servers[:2])
	r := b.command("run", b.write("own.yaml", onCluster(cluster, "stop: {time: 60s}", "events: [{at: 300ms, join: {count: 1}}]"))).start()
	b.await("the third server", func() bool {
		select {
		case <-r.done:
			t.Fatalf("the run ended before the server had joined:\n%s%s", r.stdout.String(), r.stderr.String())
		default:
		}
		return exists(b.path("counts"))
	})
	r.signal(syscall.SIGKILL)
	r.wait()
	next := b.run(0, "run", b.write("next.yaml", onCluster(cluster, brief)))
	contains(t, next.stderr.String(), "ran a command of the cluster of a killed run: leave: sh scale.sh 2", "dropped the tables of a killed run: skerry_")
	counts("3 2")
}

// The cluster that up started is removed by down at the next start after kill -9.
func TestDownAfterKill(t *testing.T) {
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	file := b.write("own.yaml", onCluster(fmt.Sprintf("{servers: [%q], up: 'touch up', down: 'rm up'}", s.addr), "stop: {time: 60s}"))
	r := b.command("run", file).start()
	b.measuring(b.path("runs/latest"))
	r.signal(syscall.SIGKILL)
	r.wait()
	next := b.run(0, "run", b.write("next.yaml", onCluster(fmt.Sprintf("[%q]", s.addr), brief)))
	contains(t, next.stderr.String(), "ran a command of the cluster of a killed run: down: rm up")
	if exists(b.path("up")) {
		t.Error("the cluster was not removed")
	}
}
