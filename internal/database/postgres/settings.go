package postgres

import (
	"errors"
	"strings"
	"time"

	"skerry/internal/database"
)

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client.
const (
	PropHosts    = "postgres.hosts"    // host:port,host:port,...: all members
	PropUser     = "postgres.user"     // default postgres
	PropPassword = "postgres.password" //
	PropDatabase = "postgres.database" // default postgres
	PropRead     = "postgres.read"     // who answers reads and scans: primary (default), standby or nearest
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

// settings are the client's properties, understood.
type settings struct {
	hosts                    string // comma separated: settings are comparable
	user, password, database string
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
		read:    r.Choice(PropRead, readPrimary, readPrimary, readStandby, readNearest),
		timeout: r.Milliseconds(PropTimeout, defaultTimeout),
		table:   r.Text(PropTable, defaultTable), prefix: r.Text(PropFieldPrefix, defaultPrefix),
		fields: r.Int(PropFieldCount, 1, 1000, defaultFields),
	}
	return s, r.Err()
}
