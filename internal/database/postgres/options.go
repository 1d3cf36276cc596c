package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
)

// ErrOption marks an invalid option.
var ErrOption = errors.New("invalid option of postgres")

const (
	defaultPort = 5432
	// maxNodes is how many standbys a primary has senders and slots for, and itself.
	maxNodes = 64
	// user is the superuser; it needs no password inside a lab.
	user = "postgres"
)

// options are a cluster's settings. Unset ones keep PostgreSQL's defaults, except memory.
type options struct {
	port    int
	primary string // the node of the first primary, "" for the first node
	read    string
	config  []string // lines of postgresql.conf
}

func parseOptions(given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, "port", "primary", "synchronous_commit", "synchronous_standby_names", "fsync",
		"shared_buffers", "max_connections", "hot_standby_feedback", "wal_keep_size", "checkpoint_timeout", "read")
	o := options{
		port:    r.Int("port", 1, 65535, defaultPort),
		primary: r.Text("primary", ""),
		read:    r.Choice("read", readPrimary, readPrimary, readStandby, readNearest),
	}
	set := func(name, value string) {
		o.config = append(o.config, name+" = '"+strings.ReplaceAll(value, "'", "''")+"'")
	}
	set("synchronous_commit", r.Choice("synchronous_commit", "on", "on", "off", "local", "remote_write", "remote_apply"))
	set("synchronous_standby_names", r.Text("synchronous_standby_names", ""))
	set("fsync", onOff(r.Bool("fsync", true)))
	set("hot_standby_feedback", onOff(r.Bool("hot_standby_feedback", false)))
	set("shared_buffers", strconv.FormatInt(r.Bytes("shared_buffers", 32<<20)>>10, 10)+"kB")
	set("wal_keep_size", strconv.FormatInt(r.Bytes("wal_keep_size", 128<<20)>>20, 10)+"MB")
	set("max_connections", strconv.Itoa(r.Int("max_connections", 10, 10000, 400)))
	if d := r.Duration("checkpoint_timeout", 0); d > 0 {
		set("checkpoint_timeout", strconv.FormatInt(int64(d.Seconds()), 10)+"s")
	}
	if r.Err() == nil && strings.ContainsAny(r.Text("synchronous_standby_names", ""), "\n\\") {
		return o, fmt.Errorf("%w: synchronous_standby_names may not hold a backslash or a line's end", ErrOption)
	}
	return o, r.Err()
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// ErrProperty marks an invalid client property.
var ErrProperty = errors.New("bad property")

// Properties of the client.
const (
	PropHosts    = "postgres.hosts"    // host:port,host:port,...: all members
	PropUser     = "postgres.user"     // default postgres
	PropPassword = "postgres.password" //
	PropDatabase = "postgres.database" // default postgres
	PropRead     = "postgres.read"     // server of reads and scans: primary (default), standby or nearest
	PropTimeout  = "postgres.timeout"  // milliseconds for an operation that has no other bound; default 10000
	// The workload's own.
	PropTable       = "table"
	PropFieldCount  = "fieldcount"
	PropFieldPrefix = "fieldnameprefix"
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropHosts, PropUser, PropPassword, PropDatabase, PropRead, PropTimeout}
}

const (
	readPrimary = "primary"
	readStandby = "standby"
	readNearest = "nearest"

	defaultTimeout = 10 * time.Second
	defaultTable   = "usertable"
	defaultFields  = 10
	defaultPrefix  = "field"
)

type settings struct {
	hosts                    string // comma separated: settings are comparable
	user, password, database string
	access                   string // see database.Access
	read                     string
	timeout                  time.Duration
	table, prefix            string
	fields                   int
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "postgres.", p, Properties()...)
	s := settings{
		hosts: strings.Join(r.Addresses(PropHosts, defaultPort), ","),
		user:  r.Text(PropUser, user), password: r.Text(PropPassword, ""), database: r.Text(PropDatabase, user),
		access:  p[database.PropAccess],
		read:    r.Choice(PropRead, readPrimary, readPrimary, readStandby, readNearest),
		timeout: r.Milliseconds(PropTimeout, defaultTimeout),
		table:   r.Text(PropTable, defaultTable), prefix: r.Text(PropFieldPrefix, defaultPrefix),
		fields: r.Int(PropFieldCount, 1, 1000, defaultFields),
	}
	return s, r.Err()
}
