package mysql

import (
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
)

// Properties of the client.
const (
	PropHosts    = "mysql.hosts"           // host:port,host:port,...: the members
	PropUser     = "mysql.user"            // default skerry
	PropPassword = "mysql.password"        //
	PropSchema   = "mysql.schema"          // default ycsb
	PropMember   = "mysql.member"          // nearest, first, round_robin: which member a worker talks to
	PropReads    = "mysql.reads"           // primary, member: where reads go when one member takes all writes
	PropTimeout  = "mysql.timeout"         // milliseconds for an operation that has no other bound; default 10000
	PropConnect  = "mysql.connect_timeout" // milliseconds; default 2000
	PropSession  = "mysql.session"         // variables of each session: name=value;name=value
	// The workload's own properties say which columns the table has.
	propTable      = "table"
	propFieldCount = "fieldcount"
	propFieldName  = "fieldnameprefix"
	propFieldSize  = "fieldlength"
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropHosts, PropUser, PropPassword, PropSchema, PropMember, PropReads, PropTimeout, PropConnect, PropSession}
}

// ServerProperties returns the properties for servers: see database.External.
func ServerProperties(servers []string) map[string]string {
	return map[string]string{PropHosts: strings.Join(servers, ",")}
}

// Choices of a member.
const (
	Nearest    = "nearest"
	First      = "first"
	RoundRobin = "round_robin"
)

// Members are the choices of a member.
func Members() []string { return []string{Nearest, First, RoundRobin} }

// Where reads go.
const (
	ReadsPrimary = "primary"
	ReadsMember  = "member"
)

const (
	defaultTimeout = 10 * time.Second
	defaultConnect = 2 * time.Second
	maxFields      = 1000 // InnoDB's limit of columns is 1017
)

// settings are the client's properties, understood. They are comparable.
type settings struct {
	hosts                  string // separated by commas
	user, password, schema string
	access                 string // see database.Access
	member, reads          string
	timeout, connect       time.Duration
	session                string
	table                  string
	fields                 int
	prefix                 string
	size                   int // of a field, in bytes
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "mysql.", p, Properties()...)
	s := settings{
		hosts:    strings.Join(r.Addresses(PropHosts, Port), ","),
		user:     r.Text(PropUser, User),
		password: r.Text(PropPassword, ""),
		access:   p[database.PropAccess],
		schema:   r.Text(PropSchema, Schema),
		member:   r.Choice(PropMember, Nearest, Members()...),
		reads:    r.Choice(PropReads, ReadsPrimary, ReadsPrimary, ReadsMember),
		timeout:  r.Milliseconds(PropTimeout, defaultTimeout),
		connect:  r.Milliseconds(PropConnect, defaultConnect),
		session:  r.Text(PropSession, ""),
		table:    r.Text(propTable, Table),
		fields:   r.Int(propFieldCount, 1, maxFields, 10),
		prefix:   r.Text(propFieldName, "field"),
		size:     r.Int(propFieldSize, 1, 1<<24-1, 100),
	}
	if s.session != "" && slices.ContainsFunc(strings.Split(s.session, ";"), func(v string) bool { return !strings.Contains(v, "=") }) {
		r.Reject(PropSession, "a list of name=value, separated by semicolons")
	}
	if slices.ContainsFunc(strings.FieldsFunc(s.session, func(c rune) bool { return c == ';' || c == ',' }), endsAutocommit) {
		r.Reject(PropSession, "possible: without autocommit the server answers OK to writes that are never committed")
	}
	return s, r.Err()
}

// endsAutocommit reports whether name=value has the server wait for a COMMIT, which this client never sends.
func endsAutocommit(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return strings.EqualFold(strings.Trim(name, " :`"), "autocommit") &&
		!slices.Contains([]string{"1", "on", "true", "default"}, strings.ToLower(strings.Trim(value, " '\"")))
}
