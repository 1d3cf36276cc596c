package mongodb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

// world is the shared state of fake servers: configurations, running servers, and the primary - the first running voter
// by priority and order, if most voters run.
type world struct {
	mu      sync.Mutex
	sets    map[string]*setConfig
	running map[string]bool // by address
	stepped map[string]bool // stepped down: not elected while another can be
	elected map[string]bool // sets with a primary; a set elects at its first status request
	shards  []shardState
	drains  map[string]int    // number of removeShard requests
	sharded map[string]string // shard name of an address, kept after its removal
	seen    []string          // management commands with the role of their server
}

func newWorld() *world {
	return &world{sets: make(map[string]*setConfig), running: make(map[string]bool), stepped: make(map[string]bool), elected: make(map[string]bool),
		drains: make(map[string]int), sharded: make(map[string]string)}
}

func (w *world) primary(set string) string {
	config := w.sets[set]
	if config == nil || !w.elected[set] {
		return ""
	}
	votes, up := 0, 0
	candidates := slices.Clone(config.Members)
	for _, m := range config.Members {
		votes += m.Votes
		if w.running[m.Host] {
			up += m.Votes
		}
	}
	if 2*up <= votes {
		return ""
	}
	slices.SortStableFunc(candidates, func(a, b memberConfig) int { return int(b.Priority - a.Priority) })
	last := ""
	for _, m := range candidates {
		if !w.running[m.Host] || m.Priority == 0 {
			continue
		}
		if !w.stepped[m.Host] {
			return m.Host
		}
		last = m.Host
	}
	return last
}

// fake is a server of the world.
type fake struct {
	*world
	addr, set string // set is "" for a mongos
}

// answer returns the response of the server, in the form of testdata/replies.json.
func (f *fake) answer(command bson.D) bson.D {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, value := command[0].Key, command[0].Value
	if isHello(command) {
		primary := f.set == "" || f.primary(f.set) == f.addr
		more := []bson.E{{Key: "ismaster", Value: primary}}
		if f.set == "" {
			more = append(more, bson.E{Key: "msg", Value: "isdbgrid"})
		} else {
			more = append(more, bson.E{Key: "secondary", Value: !primary}, bson.E{Key: "me", Value: f.addr})
		}
		return hello(more...)
	}
	if strings.HasPrefix(name, "replSet") && name != "replSetGetStatus" && name != "replSetGetConfig" || strings.HasSuffix(name, "hard") {
		f.seen = append(f.seen, name)
	}
	switch name {
	case "ping", "endSessions":
		return done()
	case "replSetInitiate":
		return f.configure(value, 0)
	case "replSetReconfig":
		if f.primary(f.set) != f.addr {
			return serverError(codeNotWritablePrimary, "NotWritablePrimary", "not primary")
		}
		return f.configure(value, f.sets[f.set].Version)
	case "replSetGetConfig":
		return done(bson.E{Key: "config", Value: f.sets[f.set]})
	case "replSetGetStatus":
		return f.status()
	case "replSetStepDown":
		f.stepped[f.addr] = true
		return done()
	case "count":
		return done(bson.E{Key: "n", Value: 7})
	case "aggregate":
		return f.aggregate(command)
	case "delete":
		return done(bson.E{Key: "n", Value: 7})
	}
	if f.set == "" {
		return f.route(name, fmt.Sprint(value))
	}
	return serverError(59, "CommandNotFound", "no such command: "+name)
}

func (f *fake) configure(value any, version int) bson.D {
	raw, err := bson.Marshal(value)
	if err != nil {
		return serverError(2, "BadValue", err.Error())
	}
	var config setConfig
	if err := bson.Unmarshal(raw, &config); err == nil && len(config.Members) == 0 {
		return serverError(93, "InvalidReplicaSetConfig", "no members")
	} else if err != nil || config.Version != version+1 {
		return serverError(codeNewConfig, "NewReplicaSetConfigurationIncompatible", fmt.Sprint("version ", config.Version, " ", err))
	}
	if old := f.sets[f.set]; old != nil && max(len(config.Members), len(old.Members))-min(len(config.Members), len(old.Members)) > 1 {
		return serverError(codeNewConfig, "NewReplicaSetConfigurationIncompatible", "more than one member at a time")
	}
	f.sets[f.set] = &config
	return done()
}

func (f *fake) status() bson.D {
	config := f.sets[f.set]
	if config == nil {
		return serverError(codeNotYetInitialized, "NotYetInitialized", "no replset config has been received")
	}
	var members bson.A
	for i, m := range config.Members {
		health, state, text := 1, stateSecondary, "SECONDARY"
		switch {
		case !f.running[m.Host]:
			health, state, text = 0, 8, "(not reachable/healthy)"
		case f.primary(f.set) == m.Host:
			state, text = statePrimary, "PRIMARY"
		}
		members = append(members, bson.D{{Key: "_id", Value: i}, {Key: "name", Value: m.Host}, {Key: "health", Value: float64(health)},
			{Key: "state", Value: state}, {Key: "stateStr", Value: text}, {Key: "configVersion", Value: config.Version}})
	}
	f.elected[f.set] = true
	return done(bson.E{Key: "set", Value: f.set}, bson.E{Key: "myState", Value: 1}, bson.E{Key: "members", Value: members})
}

// aggregate answers the used pipelines: the statistics of shards, the number of chunks of each, and the number of
// documents.
func (f *fake) aggregate(command bson.D) bson.D {
	rows := bson.A{bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: int32(7)}}}
	switch text := fmt.Sprint(command); {
	case strings.Contains(text, "$collStats"):
		rows = nil
		for i, s := range f.shards {
			rows = append(rows, bson.D{{Key: "shard", Value: s.ID}, {Key: "count", Value: i + 1}})
		}
	case command[0].Value == "chunks":
		rows = nil
		for _, s := range f.shards {
			rows = append(rows, bson.D{{Key: "_id", Value: s.ID}, {Key: "n", Value: 2}})
		}
	}
	return done(bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "ycsb.usertable"}, {Key: "firstBatch", Value: rows}}})
}

// route answers the commands of a mongos.
func (f *fake) route(name, value string) bson.D {
	switch name {
	case "addShard":
		set, hosts, _ := strings.Cut(value, "/")
		if was := f.sharded[hosts]; was != "" && was != set {
			return serverError(8, "UnknownError", "replset name mismatch: "+hosts+" was in "+was)
		}
		f.sharded[hosts] = set
		f.shards = append(f.shards, shardState{ID: set, Host: value, State: 1})
		return done(bson.E{Key: "shardAdded", Value: set})
	case "listShards":
		return done(bson.E{Key: "shards", Value: f.shards})
	case "enableSharding", "shardCollection", "movePrimary":
		f.seen = append(f.seen, name)
		return done()
	case "removeShard":
		if !slices.ContainsFunc(f.shards, func(s shardState) bool { return s.ID == value }) {
			return serverError(codeShardNotFound, "ShardNotFound", "Shard "+value+" does not exist")
		}
		f.drains[value]++
		switch f.drains[value] {
		case 1:
			return done(bson.E{Key: "state", Value: "started"}, bson.E{Key: "dbsToMove", Value: bson.A{"ycsb"}})
		case 2:
			return done(bson.E{Key: "state", Value: "ongoing"}, bson.E{Key: "dbsToMove", Value: bson.A{"ycsb"}},
				bson.E{Key: "remaining", Value: bson.D{{Key: "chunks", Value: int64(0)}, {Key: "dbs", Value: int64(1)}}})
		}
		f.shards = slices.DeleteFunc(f.shards, func(s shardState) bool { return s.ID == value })
		return done(bson.E{Key: "state", Value: completed})
	}
	return serverError(59, "CommandNotFound", "no such command: "+name)
}

// fakeHost starts fake servers instead of mongod and mongos.
type fakeHost struct {
	host.Host
	*world
	t testing.TB
}

func fakeHosts(t testing.TB, w *world, n int) []host.Host {
	var hosts []host.Host
	for _, h := range testhost.Loopback(t, n) {
		hosts = append(hosts, &fakeHost{Host: h, world: w, t: t})
	}
	return hosts
}

// Start implements host.Host.
func (h *fakeHost) Start(_ context.Context, c host.Command) (host.Process, error) {
	flag := func(name string) string {
		if i := slices.Index(c.Args, name); i >= 0 {
			return c.Args[i+1]
		}
		return ""
	}
	if err := os.WriteFile(c.Log, []byte(strings.Join(c.Args, " ")+"\n"), 0o644); err != nil {
		return nil, err
	}
	f := &fake{world: h.world, addr: flag("--bind_ip") + ":" + flag("--port"), set: flag("--replSet")}
	if f.set == "" && !strings.HasPrefix(flag("--configdb"), configName+"/") {
		return nil, errors.New("neither --replSet nor --configdb")
	}
	server, err := serveFake(f.addr, f.answer)
	if err != nil {
		return nil, err
	}
	p := &fakeProcess{fake: f, server: server, ended: make(chan struct{})}
	h.mu.Lock()
	h.running[f.addr] = true
	h.mu.Unlock()
	h.t.Cleanup(func() { _ = p.Kill() })
	return p, nil
}

// fakeProcess is a fake server as a process.
type fakeProcess struct {
	fake   *fake
	server *fakeServer
	once   sync.Once
	ended  chan struct{}
}

func (p *fakeProcess) PID() int              { return os.Getpid() }
func (p *fakeProcess) Done() <-chan struct{} { return p.ended }
func (p *fakeProcess) Err() error            { return nil }
func (p *fakeProcess) Tail(int) string       { return "the log of a fake server" }

func (p *fakeProcess) Signal(syscall.Signal) error { return p.Kill() }
func (p *fakeProcess) KillFamily() error           { return p.Kill() }

func (p *fakeProcess) Stop(context.Context, time.Duration) error { return p.Kill() }

func (p *fakeProcess) Kill() error {
	p.once.Do(func() {
		p.fake.mu.Lock()
		delete(p.fake.running, p.fake.addr)
		p.fake.mu.Unlock()
		p.server.close()
		close(p.ended)
	})
	return nil
}
