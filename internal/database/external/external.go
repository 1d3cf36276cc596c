// Package external drives clusters that Skerry did not start: the user's own servers, and what Kubernetes, Swarm, Compose
// or a managed service run.
//
//	up ─► servers_from ─► ready ─► table ─► trials, join, leave ─► table dropped ─► down
//
// Invariant: nothing of the user's is harmed. A trial writes to one table. The name of the table has 64 random bits that
// are drawn after all others wrote theirs, so that no table, key prefix or collection of others has it. The name is on
// this machine's disk before the first client can create the table (recordIntent), and it is removed from there only
// after the table was dropped. So at every moment, whatever process is killed:
//
//   - a table of Skerry's on a cluster has its name in a scratch directory, and
//   - the name in a scratch directory can be dropped, whether the table exists or not, and the drop harms no other table.
//
// The same holds for down, and for the command that gives the cluster its number of servers back (undo.go). Sweep cleans up
// for scratch directories whose process has died; the kernel releases the lock of a scratch directory with its process.
package external

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/load"
)

// ClusterSpec describes a cluster that Skerry did not start. Commands are lines for /bin/sh. They run on the machine that
// runs skerry, with the environment of skerry.
type ClusterSpec struct {
	// Servers are the addresses of servers, HOST:PORT.
	Servers []string `yaml:"servers" json:"servers,omitempty"`
	// ServersFrom is a command that prints these addresses, separated by white space or commas, instead of servers.
	ServersFrom string `yaml:"servers_from" json:"servers_from,omitempty"`
	// Up is a command that starts the cluster, before each trial. With reuse it runs once.
	Up string `yaml:"up" json:"up,omitempty"`
	// Ready is a command that succeeds when the cluster serves. It is repeated until it succeeds.
	Ready string `yaml:"ready" json:"ready,omitempty"`
	// Join is a command that raises the number of servers to {{.Count}}, for events of this kind. It needs servers_from, and
	// leave if there is no up: the trial ends with as many servers as before.
	Join string `yaml:"join" json:"join,omitempty"`
	// Leave is a command that lowers the number of servers to {{.Count}}. It needs what join needs.
	Leave string `yaml:"leave" json:"leave,omitempty"`
	// Down is a command that removes the cluster after the trial: also after a failure, after Ctrl-C, and at the next start
	// after skerry was killed.
	Down string `yaml:"down" json:"down,omitempty"`
	// Dir is the directory of these commands and of the files of password and tls, relative to this file; by default it is
	// that of this file.
	Dir string `yaml:"dir" json:"dir,omitempty"`
	// Timeout bounds each of these commands, and the time until all servers accept connections.
	Timeout         unit.Duration `yaml:"timeout" json:"timeout" jsonschema:"default=5m"`
	database.Access `yaml:",inline"`
	// Properties are further properties of the clients, such as redis.timeout (see databases.md). Passwords are refused.
	Properties map[string]string `yaml:"properties" json:"properties,omitempty"`
}

// Alternatives excludes servers and servers_from from each other.
func (ClusterSpec) Alternatives() [][]string { return [][]string{{"servers", "servers_from"}} }

// Shorthand lets "cluster: [host:6379]" stand for "cluster: {servers: [host:6379]}".
func (ClusterSpec) Shorthand() string { return "servers" }

// Check returns the mistakes of a spec by the key that they concern.
func (s ClusterSpec) Check() map[string]error {
	mistakes := map[string]error{}
	if len(s.Servers) == 0 && s.ServersFrom == "" {
		mistakes[""] = fmt.Errorf("give servers, or servers_from")
	}
	if _, err := checkServers(s.Servers); err != nil && len(s.Servers) > 0 {
		mistakes["servers"] = err
	}
	if s.Down != "" && s.Up == "" {
		mistakes["down"] = fmt.Errorf("down without up would remove a cluster that this experiment did not start")
	}
	for key, c := range map[string]struct{ text, opposite string }{"join": {s.Join, s.Leave}, "leave": {s.Leave, s.Join}} {
		switch {
		case c.text == "":
		case s.ServersFrom == "":
			mistakes[key] = fmt.Errorf("%s needs servers_from, which prints the servers after the change", key)
		case c.opposite == "" && s.Up == "":
			mistakes[key] = fmt.Errorf("%s needs its opposite, because the trial ends with as many servers as before: give join and leave", key)
		default:
			if _, err := renderCount(c.text, 3); err != nil {
				mistakes[key] = err
			}
		}
	}
	return mistakes
}

// Commands lists the commands of a spec after their keys, in the order in which a trial runs them.
func (s ClusterSpec) Commands() (all []string) {
	for _, c := range [][2]string{
		{"up", s.Up}, {"servers_from", s.ServersFrom}, {"ready", s.Ready}, {"join", s.Join}, {"leave", s.Leave}, {"down", s.Down},
	} {
		if c[1] != "" {
			all = append(all, c[0]+": "+c[1])
		}
	}
	return all
}

// ID tells clusters apart: "cluster", and a hash of the spec.
func (s ClusterSpec) ID() string {
	text, err := json.Marshal(s)
	if err != nil { // plain data
		return "cluster"
	}
	sum := sha256.Sum256(text)
	return "cluster-" + hex.EncodeToString(sum[:4])
}

// String describes where the cluster is, for people.
func (s ClusterSpec) String() string {
	if len(s.Servers) > 0 {
		return strings.Join(s.Servers, ", ")
	}
	return "servers that " + s.ServersFrom + " prints"
}

// parseServers reads the output of servers_from.
func parseServers(text string) ([]string, error) {
	return checkServers(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }))
}

// checkServers returns the servers if all are HOST:PORT and none is given twice.
func checkServers(servers []string) ([]string, error) {
	if len(servers) == 0 {
		return nil, fmt.Errorf("no server is given")
	}
	for i, s := range servers {
		host, port, err := net.SplitHostPort(s)
		if err != nil || host == "" || port == "" || port == "0" {
			return nil, fmt.Errorf("%q is not HOST:PORT", s)
		}
		if slices.Contains(servers[:i], s) {
			return nil, fmt.Errorf("server %s is given twice", s)
		}
	}
	return servers, nil
}

// connectTimeout bounds one attempt to connect to a server.
const connectTimeout = 5 * time.Second

// Database is a database whose cluster Skerry did not start.
type Database struct {
	database.External
	spec ClusterSpec // with the full path of the commands' directory
}

// New returns the database d for the cluster of a spec in a file in dir.
func New(d database.Database, s ClusterSpec, dir string) (*Database, error) {
	e, ok := d.(database.External)
	if !ok {
		return nil, advice.With(fmt.Errorf("%w: %s on a cluster that Skerry did not start", database.ErrUnsupported, d.Name()),
			"let Skerry start it: remove cluster, and give a topology")
	}
	if can := e.Capabilities(); can.UserClient && !can.Scan {
		return nil, advice.With(fmt.Errorf("%w: a trial on a cluster that Skerry did not start counts and drops its table by scans, "+
			"and clients of %s have none", database.ErrUnsupported, d.Name()), "implement scans, and write can: {scan: true}")
	}
	if !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(dir, s.Dir)
	}
	return &Database{External: e, spec: s}, nil
}

var (
	_ database.Configurable = (*Database)(nil)
	_ database.Scripted     = (*Database)(nil)
)

// Capabilities implements database.Database: members are not Skerry's to start, stop or read one by one.
func (d *Database) Capabilities() database.Capabilities {
	own := d.External.Capabilities()
	return database.Capabilities{Scan: own.Scan, Tree: own.Tree}
}

func (d *Database) Properties() []string { return database.ClientProperties(d.External) }

// Check implements database.Database. Options are settings of servers. Properties that name the table are refused: with
// one of the user's names, a trial would write to records of the user and drop them.
func (d *Database) Check(_ int, options database.Options) error {
	for name := range options {
		return advice.With(fmt.Errorf("option %s: servers of a cluster that Skerry did not start have their own settings", name),
			"give properties of clients under cluster.properties")
	}
	own := d.tableProperties(nil, tablePrefix)
	for name := range d.spec.Properties {
		if own[name] != "" {
			return advice.With(fmt.Errorf("property %s: a trial writes to a table that only Skerry names", name), "remove it")
		}
	}
	return nil
}

// CheckAccess returns the mistakes of how clients log in, by the key of the spec that they concern. It reads the variables
// and files.
func (d *Database) CheckAccess() map[string]error {
	mistakes := map[string]error{}
	if d.External.Capabilities().NoLogin && d.spec.Access != (database.Access{}) {
		mistakes[""] = advice.With(fmt.Errorf("clients of %s do not log in and have no TLS here", d.Name()), "remove user, password and tls")
	}
	if key, err := database.CheckAccess(d.spec.Property(d.spec.Dir)); err != nil {
		mistakes[key] = err
	}
	user := d.spec.User
	for name, value := range d.spec.Properties {
		err := RefusePassword(name, value)
		if strings.HasSuffix(name, ".user") || strings.HasSuffix(name, ".username") {
			user = value
			if d.spec.User != "" {
				err = advice.With(fmt.Errorf("the user is given twice"), "remove it: cluster.user applies")
			}
		}
		if err != nil {
			mistakes["properties."+name] = err
		}
	}
	for name, value := range d.ServerProperties([]string{"server:1"}, tablePrefix) { // those of a custom database are the user's
		if err := RefusePassword(name, value); err != nil && d.spec.Properties[name] == "" {
			mistakes["properties"] = fmt.Errorf("property %s of %s: %w", name, d.Name(), err)
		}
	}
	if d.External.Capabilities().NeedsUser && d.spec.Password != (database.PasswordSpec{}) && user == "" && mistakes["password"] == nil {
		mistakes["password"] = advice.With(fmt.Errorf("clients of %s log in with a user: a password alone has no effect", d.Name()),
			"give user: NAME, or remove password")
	}
	return mistakes
}

// RefusePassword returns an error for a property of clients that contains a password: by its name, or in a URL.
func RefusePassword(name, value string) error {
	if !strings.Contains(strings.ToLower(name+" "+value), "password") && !(strings.Contains(value, "://") && strings.Contains(value, "@")) {
		return nil
	}
	return advice.With(fmt.Errorf("a password in the file would be part of the run's record"),
		"write user: NAME and password: {env: VARIABLE} under database.cluster")
}

// tableProperties returns the client properties that name a table.
func (d *Database) tableProperties(servers []string, table string) map[string]string {
	own := map[string]string{database.PropTable: table}
	for name, value := range d.ServerProperties(servers, table) {
		if strings.Contains(value, table) {
			own[name] = value
		}
	}
	return own
}

// clientProperties returns the properties of the clients of a table. They contain no secret: see database.Access. Those of
// the user replace the way to the servers,
// never the name of the table.
func (d *Database) clientProperties(servers []string, table string) map[string]string {
	properties := d.ServerProperties(servers, table)
	maps.Copy(properties, d.spec.Properties)
	maps.Copy(properties, d.tableProperties(servers, table))
	properties[database.PropAccess] = d.spec.Property(d.spec.Dir)
	return properties
}

// Commands implements database.Scripted: of a custom database, the client's program is all that runs.
func (d *Database) Commands() []string {
	s, ok := d.External.(database.Scripted)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(s.Commands(), func(line string) bool { return !strings.HasPrefix(line, "client.program: ") })
}

// Find implements database.Database: nothing is installed.
func (d *Database) Find(string, string) (database.Installation, error) {
	return database.Installation{Database: d.Name(), Version: UnknownVersion}, nil
}

// Start implements database.Database. It starts the cluster, waits until it serves, and lets a client create the
// table. After an error the cluster is down again and the table is dropped.
func (d *Database) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	c, err := start(ctx, d, env)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d *Database) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	return d.External.Open(ctx, properties)
}
