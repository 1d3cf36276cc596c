package external

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/process"
)

// Cluster is a cluster that Skerry did not start, with a table of its own.
type Cluster struct {
	database *Database
	scratch  string               // directory for the name of the table
	started  bool                 // by the command up
	initial  int                  // number of servers at the start
	undo     process.ShellCommand // what Stop runs, empty for none

	mu         sync.Mutex
	servers    []string
	properties map[string]string // nil before there can be a table
	version    string            // of the servers
	notes      []string
}

var _ database.Cluster = (*Cluster)(nil)

// tablePrefix begins the name of every table. Names are valid in all databases: lower-case letters, digits and _, and
// at most 32 characters.
const tablePrefix = "skerry_"

// newTable draws the name of a table.
func newTable() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("draw the name of a table: %w", err)
	}
	return tablePrefix + hex.EncodeToString(b[:]), nil
}

func start(ctx context.Context, d *Database, env database.Env) (*Cluster, error) {
	c := &Cluster{database: d, scratch: env.Scratch}
	err := c.start(ctx, env)
	if err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, env database.Env) error {
	s := c.database.spec
	if s.Up != "" {
		env.ReportProgress(c.database.Name(), "starting the cluster: %s", s.Up)
		c.started = true
		if s.Down != "" { // also after a failure half-way
			if err := c.recordUndo("down", s.Down); err != nil {
				return err
			}
		}
		if _, err := process.RunShell(ctx, c.command("up", s.Up)); err != nil {
			return err
		}
	}
	servers, err := c.findServers(ctx)
	if err != nil {
		return err
	}
	c.servers, c.initial = servers, len(servers)
	if s.Ready != "" {
		env.ReportProgress(c.database.Name(), "waiting until the cluster serves: %s", s.Ready)
		if _, err := process.RunShellUntil(ctx, c.command("ready", s.Ready)); err != nil {
			return err
		}
	}
	limit := time.Duration(0) // one attempt
	if c.started {
		limit = s.Timeout.Duration()
	}
	if err := await(ctx, limit, c.Ready); err != nil {
		return advice.With(err, "check that the servers run and that this machine reaches them")
	}
	table, err := newTable()
	if err != nil {
		return err
	}
	if err := await(ctx, limit, func(ctx context.Context) error { return c.makeTable(ctx, table) }); err != nil {
		return err
	}
	c.askVersions(ctx)
	return nil
}

func (c *Cluster) command(name, text string) process.ShellCommand {
	return process.ShellCommand{Name: name, Text: text, Dir: c.database.spec.Dir, Timeout: c.database.spec.Timeout.Duration()}
}

// findServers returns the present servers.
func (c *Cluster) findServers(ctx context.Context) ([]string, error) {
	s := c.database.spec
	if s.ServersFrom == "" {
		return s.Servers, nil
	}
	out, err := process.RunShell(ctx, c.command("servers_from", s.ServersFrom))
	if err != nil {
		return nil, err
	}
	servers, err := parseServers(out)
	if err != nil {
		return nil, fmt.Errorf("command servers_from: %w", err)
	}
	return servers, nil
}

// await repeats try until it succeeds, for at most limit.
func await(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	began := time.Now()
	for {
		err := try(ctx)
		if err == nil || time.Since(began) >= limit {
			return err
		}
		if linger.For(ctx, connectPause) != nil {
			return err
		}
	}
}

const connectPause = 200 * time.Millisecond

// makeTable lets a client create the table, and checks that it can write there: a read-only replica is refused before the
// load. The name is recorded before anything can exist on the cluster. Where a client that connects creates nothing, it
// connects first: a cluster that refuses the login leaves no name for Sweep, which would be refused as well.
func (c *Cluster) makeTable(ctx context.Context, table string) (err error) {
	properties := c.database.clientProperties(c.servers, table)
	lazy := c.database.External.Capabilities().LazyTables
	if !lazy {
		if err := c.claimTable(properties); err != nil {
			return err
		}
	}
	client, err := c.database.Open(ctx, properties)
	if err != nil {
		return c.explainRefusal(fmt.Errorf("connect to %s: %w", strings.Join(c.servers, ", "), err))
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if c.database.External.Capabilities().UserClient {
		if err := checkSeparation(ctx, client, table); err != nil {
			return fmt.Errorf("use tables at %s: %w", strings.Join(c.servers, ", "), err)
		}
	}
	if lazy {
		if err := c.claimTable(properties); err != nil {
			return err
		}
	}
	if err := writeRecord(ctx, client, table); err != nil {
		return c.explainRefusal(fmt.Errorf("write to %s: %w", strings.Join(c.servers, ", "), err))
	}
	return nil
}

// refusals are parts of errors of servers and of package tls, in lower case, by the explanation. Some count only for
// connections with TLS, or without.
var refusals = []struct {
	with, without bool
	explanation   string
	parts         []string
}{
	{true, false, "does this port use TLS? If not, remove tls from database.cluster",
		[]string{"does not look like a tls handshake", "refused tls connection", "does not support tls", "deadline exceeded", "i/o timeout"}},
	{true, false, "give the certificate of the servers' authority: tls: {ca: FILE}", []string{"unknown authority"}},
	{true, false, "give a name in the servers' certificate: tls: {server_name: NAME}",
		[]string{"certificate is valid for", "certificate is not valid for", "doesn't contain any ip sans"}},
	{true, false, "give the clients' certificate and key: tls: {certificate: FILE, key: FILE}",
		[]string{"certificate required", "bad certificate", "requires a valid client certificate", "handshake failure"}},
	{false, true, "if the servers require TLS, give tls under database.cluster",
		[]string{"no encryption", "insecure transport", ": eof", "unexpected eof", "connection reset", "server preface"}},
	{true, true, "check user, password and tls of database.cluster", []string{"noauth", "wrongpass", "authentication failed", "access denied",
		"user name is empty", "credentials", "authentication required", "requires authentication"}},
}

// explainRefusal adds an explanation to the error of a connection whose login or TLS was refused.
func (c *Cluster) explainRefusal(err error) error {
	text, encrypted := strings.ToLower(err.Error()), c.database.spec.TLS != (database.TLSSpec{})
	for _, r := range refusals {
		matches := slices.ContainsFunc(r.parts, func(part string) bool { return strings.Contains(text, part) })
		if matches && (encrypted && r.with || !encrypted && r.without) {
			return fmt.Errorf("%w; %s", err, r.explanation)
		}
	}
	return err
}

// claimTable records the table's name; from then on Stop drops it.
func (c *Cluster) claimTable(properties map[string]string) error {
	c.mu.Lock()
	c.properties = properties
	c.mu.Unlock()
	return recordIntent(c.scratch, intent{
		Database: c.database.Name(), Servers: c.servers, Properties: properties, Created: time.Now().UTC(),
	})
}

// checkSeparation refuses a client of the user's that does not keep tables apart: dropping its table would drop the user's
// records. Therefore it runs before the table's name is recorded. The key of its record is the random name.
func checkSeparation(ctx context.Context, client load.Client, table string) error {
	other := table + "_other"
	if err := client.Insert(ctx, table, table, probeRecord()); err != nil {
		return err
	}
	_, err := client.Read(ctx, other, table, nil, nil)
	if deleteErr := client.Delete(ctx, table, table); deleteErr != nil {
		return fmt.Errorf("delete record %s: %w", table, deleteErr)
	}
	switch {
	case errors.Is(err, load.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read a record that does not exist from table %s: %w, want not found", other, err)
	}
	return advice.With(fmt.Errorf("the clients do not keep tables apart: a record of table %s is in table %s, too", table, other),
		"store each record under the table of its request")
}

func probeRecord() []load.Field { return []load.Field{{Name: "field0", Value: []byte("skerry")}} }

// writeRecord writes a record and deletes it again.
func writeRecord(ctx context.Context, client load.Client, table string) error {
	const key = "user0"
	if err := client.Insert(ctx, table, key, probeRecord()); err != nil {
		return err
	}
	return client.Delete(ctx, table, key)
}

// Servers are the addresses of the cluster's servers.
func (c *Cluster) Servers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.servers)
}

func (c *Cluster) Properties() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.properties)
}

// Ready implements database.Cluster: every server accepts connections.
func (c *Cluster) Ready(ctx context.Context) error { return checkServing(ctx, c.Servers()) }

func checkServing(ctx context.Context, servers []string) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			if _, err := DialTime(ctx, s); err != nil {
				errs[i] = fmt.Errorf("%w: %w", database.ErrNotReady, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// DialTime measures how long a TCP connection to a server takes: one round trip. The name is resolved before.
func DialTime(ctx context.Context, server string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	addr, err := resolve(ctx, server)
	if err != nil {
		return 0, fmt.Errorf("server %s: %w", server, err)
	}
	began := time.Now()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("server %s does not accept connections: %w", server, err)
	}
	return took, conn.Close()
}

func resolve(ctx context.Context, server string) (string, error) {
	name, port, err := net.SplitHostPort(server)
	if err != nil || net.ParseIP(name) != nil {
		return server, err
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addrs[0], port), nil
}

func (c *Cluster) Members(ctx context.Context) ([]database.Member, error) {
	servers := c.Servers()
	members := make([]database.Member, len(servers))
	for i, s := range servers {
		members[i] = database.Member{Node: s, State: "up"}
		if _, err := DialTime(ctx, s); err != nil {
			members[i].State = "unreachable"
		}
	}
	return members, nil
}

func (c *Cluster) Count(ctx context.Context) (int64, error) {
	return database.CountTable(ctx, c.database.External, c.Properties())
}

func (c *Cluster) Clear(ctx context.Context) error {
	return database.DropTable(ctx, c.database.External, c.Properties())
}

func (c *Cluster) Join(context.Context, host.Host) (database.Change, error) {
	return database.Change{}, c.refuse("join")
}

func (c *Cluster) Leave(context.Context, host.Host, database.Manner) (database.Change, error) {
	return database.Change{}, c.refuse("leave")
}

func (c *Cluster) Halt(context.Context, host.Host, database.Manner) error { return c.refuse("halt") }

func (c *Cluster) Revive(context.Context, host.Host) error { return c.refuse("revive") }

func (c *Cluster) refuse(what string) error {
	return fmt.Errorf("%s: %w on a cluster that Skerry did not start", what, database.ErrUnsupported)
}

// DescribeStop says what Stop does.
func (c *Cluster) DescribeStop() string {
	if c.undo.Text != "" {
		return fmt.Sprintf("dropping the table, then %s: %s", c.undo.Name, c.undo.Text)
	}
	return "dropping the table"
}

// Stop implements database.Cluster: it drops the table, and runs the command that removes the cluster or gives it its
// servers back. If the table cannot be dropped, its name stays in the scratch directory.
func (c *Cluster) Stop(ctx context.Context) error {
	var errs []error
	if properties := c.Properties(); properties != nil {
		err := database.DropTable(ctx, c.database.External, properties)
		if err != nil {
			err = advice.With(fmt.Errorf("drop table %s: %w", properties[database.PropTable], err), "the next run drops it")
		} else {
			err = settle(c.scratch, intentFile)
		}
		errs = append(errs, err)
	}
	// The command's own timeout bounds it: the trial's time to clean up is shorter than an orchestrator may take.
	return errors.Join(append(errs, c.runUndo(context.WithoutCancel(ctx)))...)
}

// Failed implements database.Cluster: how servers end is not observed.
func (c *Cluster) Failed() <-chan struct{} { return nil }

func (c *Cluster) Err() error { return nil }

func (c *Cluster) Logs() map[string]files.File { return nil }
