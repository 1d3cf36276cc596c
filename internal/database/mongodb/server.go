package mongodb

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	// adminTimeout bounds one request to one server.
	adminTimeout = 10 * time.Second
	// startTimeout bounds a server's start, including recovery from its journal.
	startTimeout = 60 * time.Second
	// stopGrace is the time between SIGTERM and SIGKILL. A primary notifies the others for up to 15 s.
	stopGrace = 25 * time.Second
)

type server struct {
	process
	host  host.Host
	addr  string        // for clients and other members
	local string        // for the server's own node
	admin *mongo.Client // connects from the server's own node, to this server only

	daemon.Seat
}

func newAdminClient(h host.Host, addr string) (*mongo.Client, error) {
	return newDirectClient(fromNode{host.Dialer(h, adminTimeout)}, addr)
}

func newDirectClient(dialer drv.ContextDialer, addr string) (*mongo.Client, error) {
	c, err := mongo.Connect(drv.Client().SetHosts([]string{addr}).SetDirect(true).SetAppName("skerry admin").
		SetDialer(dialer).SetMaxPoolSize(4).
		SetServerSelectionTimeout(adminTimeout).SetConnectTimeout(adminTimeout).
		SetRetryReads(false).SetRetryWrites(false))
	if err != nil {
		return nil, fmt.Errorf("creating a client of mongodb at %s: %w", addr, err)
	}
	return c, nil
}

type fromNode struct{ dial database.DialFunc }

func (d fromNode) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr)
}

func newServer(h host.Host, p process) (*server, error) {
	s := &server{process: p, host: h, addr: database.PeerAddr(h, p.port), local: database.LocalAddr(h, p.port)}
	var err error
	s.admin, err = newAdminClient(h, s.local)
	return s, err
}

func (s *server) Name() string { return s.host.Name() }

// label returns the server's name in errors and logs: "mongod", "shard0", "config" or "mongos".
func (s *server) label() string {
	if s.role == roleShard {
		return s.set
	}
	return s.role
}

func (s *server) dir() string { return filepath.Join(s.host.Dir(), Name, s.label()) }

// arguments returns the command line arguments of a server that listens at bind and stores in data.
func (p process) arguments(o options, bind, data string, configServers []string) []string {
	common := []string{"--bind_ip", bind, "--port", strconv.Itoa(p.port), "--nounixsocket"}
	if p.role == roleRouter {
		return append(common, "--configdb", configName+"/"+strings.Join(configServers, ","))
	}
	args := append(common, "--dbpath", data, "--replSet", p.set,
		"--wiredTigerCacheSizeGB", strconv.FormatFloat(float64(o.cache)/(1<<30), 'f', -1, 64),
		"--setParameter", "diagnosticDataCollectionEnabled=false")
	switch p.role {
	case roleShard:
		args = append(args, "--shardsvr")
		if o.orphans > 0 {
			args = append(args, "--setParameter", "orphanCleanupDelaySecs="+strconv.Itoa(int(o.orphans.Seconds())))
		}
	case roleConfig:
		args = append(args, "--configsvr")
	}
	if o.oplog > 0 {
		args = append(args, "--oplogSize", strconv.FormatInt(max(1, o.oplog>>20), 10))
	}
	return args
}

func (s *server) dataDir() string { return filepath.Join(s.dir(), "data") }

func (s *server) program() string {
	if s.role == roleRouter {
		return "mongos"
	}
	return "mongod"
}

func (s *server) prepare(ctx context.Context) error {
	if err := files.Empty(ctx, s.host.Files(), s.dir()); err != nil {
		return fmt.Errorf("emptying the directory of %s on %s: %w", s.label(), s.host.Name(), err)
	}
	if err := s.host.Files().MakeDir(ctx, s.dataDir()); err != nil {
		return fmt.Errorf("creating the directory of %s on %s: %w", s.label(), s.host.Name(), err)
	}
	return nil
}

// launch starts a server and waits until it answers. The end of a trial does not fail the cluster.
func (c *cluster) launch(ctx context.Context, s *server, trial bool) error {
	path := c.Env.Installation.Programs[s.program()]
	if path == "" {
		return advice.With(
			fmt.Errorf("starting %s on %s: the installation has no program %s: %w", s.label(), s.host.Name(), s.program(), fs.ErrNotExist),
			"give a folder with mongod and mongos: skerry install mongodb --from PATH")
	}
	d, err := c.Servers.Start(ctx, s.host, daemon.Spec{
		Command: host.Command{
			Name: s.label(), Path: path, Args: s.arguments(c.options, host.Listen(s.host), s.dataDir(), c.setHosts(configName)),
			Env: c.Env.Installation.Env, Dir: s.dir(), Log: filepath.Join(s.dir(), s.program()+".log"),
		},
		Ports: []int{s.port}, Grace: stopGrace,
	})
	if err != nil {
		return err
	}
	if trial {
		d.MarkLeaving()
	}
	s.SetServer(d)
	return d.Await(ctx, startTimeout, s.ping)
}

func (s *server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return command(ctx, s.admin, bson.D{{Key: "ping", Value: 1}}, nil)
}

// Admin sends management requests to one server from its own node.
type Admin struct {
	client *mongo.Client
	once   sync.Once
	err    error
}

// NewAdmin returns an Admin of the server at addr. It does not connect yet.
func NewAdmin(h host.Host, addr string) (*Admin, error) {
	c, err := newAdminClient(h, addr)
	return &Admin{client: c}, err
}

// Ping returns nil if the server answers.
func (a *Admin) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return command(ctx, a.client, bson.D{{Key: "ping", Value: 1}}, nil)
}

// Count counts the documents of the benchmark's table.
func (a *Admin) Count(ctx context.Context) (int64, error) { return countRows(ctx, a.client) }

// Clear removes the documents of the benchmark's table.
func (a *Admin) Clear(ctx context.Context) error { return clearRows(ctx, a.client) }

// Close closes the connections. Further calls return the first result.
func (a *Admin) Close() error {
	a.once.Do(func() { a.err = disconnect(a.client) })
	return a.err
}

func countRows(ctx context.Context, c *mongo.Client) (int64, error) {
	n, err := c.Database(databaseName).Collection(collectionName).CountDocuments(ctx, bson.D{})
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return n, nil
}

// clearRows removes the table's documents and keeps the collection and its sharding.
func clearRows(ctx context.Context, c *mongo.Client) error {
	if _, err := c.Database(databaseName).Collection(collectionName).DeleteMany(ctx, bson.D{}); err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	return nil
}
