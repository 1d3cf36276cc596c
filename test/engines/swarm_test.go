package engines

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/database/redis"
	"skerry/test/testkit"
)

// dockerFetched reports whether setup.sh has unpacked Docker.
var dockerFetched = testkit.Feature{Name: "docker", Missing: func() string {
	if _, err := os.Stat(dockerTree); err != nil {
		return "test/engines/setup.sh has not fetched it"
	}
	return ""
}}

const dockerTree = "../../.cache/engines/docker"

// newSwarm starts a Docker Swarm of three machines; h1 manages it.
func newSwarm(t *testing.T) *room {
	t.Helper()
	testkit.Need(t, dockerFetched)
	r := newRoom(t)
	tree, err := filepath.Abs(dockerTree)
	if err != nil {
		t.Fatal(err)
	}
	r.must(exec.Command("./image.sh", r.path("redis.tar"), "test/redis:1", redisFolder(t)))
	r.must(exec.Command("cp", "swarm.sh", r.share))
	for n := 1; n <= 3; n++ {
		m := r.machine(n, tree)
		r.must(m.command("bash", "-c", `"$0/swarm.sh" "$0" </dev/null`, r.share))
	}
	r.await("three nodes of the swarm", func() bool { return strings.Count(r.docker("node", "ls"), " Ready ") == 3 })
	return r
}

// redisFolder returns the folder of the cache that has the tested series of Redis.
func redisFolder(t *testing.T) string {
	t.Helper()
	i, err := redis.New().Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(i.Dir))
}

// docker returns the output of the client on the swarm's manager.
func (r *room) docker(args ...string) string {
	out, err := r.machines["h1"].command(append([]string{"/usr/bin/docker"}, args...)...).CombinedOutput()
	r.t.Logf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	return string(out)
}

// swarmFile is an experiment on a cluster that its commands start as a service of the swarm. %s is redis-cli.
const swarmFile = `
name: swarm
database:
  name: redis
  cluster: {up: ./swarm-redis.sh up %[1]s, servers_from: ./swarm-redis.sh servers %[1]s, down: ./swarm-redis.sh down %[1]s}
workload: {name: a, records: 1000, threads: 4, target: 500}
stop: {time: 5s}
audit: true
assert: [lost_writes == 0]
`

// A Redis Cluster that runs as a service of a swarm is measured.
func TestSwarm(t *testing.T) {
	r := newSwarm(t)
	r.must(exec.Command("cp", "swarm-redis.sh", r.share))
	r.write("swarm.yaml", fmt.Sprintf(swarmFile, filepath.Join(redisFolder(t), "current/root/usr/bin/redis-cli")))
	if out, err := r.skerry("run swarm.yaml"); err != nil || !strings.Contains(out, "1 assertion held") {
		t.Errorf("%v\n%s", err, r.docker("service", "ps", "redis"))
	}
	x := r.trials("runs/latest", 1)[0]
	if x.Traffic != nil || len(x.Fidelity.Links) != 3 {
		t.Errorf("want measured paths to the three members and no link traffic: %+v", x)
	}
	if left := r.docker("service", "ls", "--quiet"); strings.TrimSpace(left) != "" {
		t.Errorf("services were not removed: %s", left)
	}
}
