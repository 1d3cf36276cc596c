package hydra

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
)

var ErrConfig = errors.New("invalid member configuration")

// Config is a member's configuration file.
type Config struct {
	// Cluster is the cluster's name, the same at all of its members.
	Cluster string `yaml:"cluster" jsonschema:"required"`
	// ID is unique and never reused after removal; 0 derives it from Name.
	ID uint64 `yaml:"id"`
	// Name is unique in the cluster, Cloud is where the member stands.
	Name  string `yaml:"name" jsonschema:"required"`
	Cloud string `yaml:"cloud" jsonschema:"required"`
	// Listen is the HTTP interface's address, Peer the address for other members.
	Listen string `yaml:"listen" jsonschema:"default=127.0.0.1:7070"`
	Peer   string `yaml:"peer" jsonschema:"default=127.0.0.1:7071"`
	// Advertise is the interface's address for other members and clients; Listen if empty.
	Advertise string `yaml:"advertise"`
	// Hosts are additional host names that the interface accepts.
	Hosts []string `yaml:"hosts"`
	// Data is the directory of the log.
	Data string `yaml:"data" jsonschema:"required"`
	// Database is the cloud's: sqlite:PATH (in Data when empty), postgres:// or mysql://.
	Database string `yaml:"database"`
	// DatabaseTimeout is how long the database server may be silent before it counts as unreachable.
	DatabaseTimeout unit.Duration `yaml:"database_timeout" jsonschema:"default=5s"`
	// Witness has a vote and the log but no database.
	Witness bool `yaml:"witness"`
	// Members lists all members of a new cluster, the same at each.
	Members []MemberConfig `yaml:"members"`
	// Join waits to be added to a running cluster.
	Join bool `yaml:"join"`
	// Direct serves the database without the log, for measurements.
	Direct bool `yaml:"direct"`

	// Certificate, Key and Authority enable mutual TLS on both addresses.
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
	Authority   string `yaml:"authority"`
	// Tokens is a file of bearer tokens.
	Tokens string `yaml:"tokens"`
	// Insecure allows non-loopback addresses without TLS and tokens.
	Insecure bool `yaml:"insecure"`

	// Election is how long a member waits for its leader before it becomes a candidate; 0 derives it
	// from measured round trips.
	Election unit.Duration `yaml:"election"`
	// PreferCloud is the preferred cloud of the leader; FollowWrites moves the leader to the cloud that writes most.
	PreferCloud  string `yaml:"prefer_cloud"`
	FollowWrites bool   `yaml:"follow_writes"`
	// MaxLog bounds the log on disk. MaxAge bounds how long it waits for a database that does not
	// apply it; 0 is unlimited.
	MaxLog unit.Bytes    `yaml:"max_log" jsonschema:"default=1GiB"`
	MaxAge unit.Duration `yaml:"max_age"`
	// InFlight is the number of concurrent requests.
	InFlight int64 `yaml:"in_flight" jsonschema:"default=4096"`
	// Timeout bounds an operation.
	Timeout unit.Duration `yaml:"timeout" jsonschema:"default=10s"`
	// Drain is how long a stopping member reports not ready before it closes.
	Drain unit.Duration `yaml:"drain" jsonschema:"default=1s"`
}

// MemberConfig is a member of a new cluster.
type MemberConfig struct {
	ID    uint64 `yaml:"id"`
	Name  string `yaml:"name" jsonschema:"required"`
	Cloud string `yaml:"cloud" jsonschema:"required"`
	Peer  string `yaml:"peer" jsonschema:"required"`
	// API is where its interface is reached.
	API     string `yaml:"api"`
	Witness bool   `yaml:"witness"`
}

func Defaults() Config {
	return Config{
		Listen: "127.0.0.1:7070", Peer: "127.0.0.1:7071", MaxLog: 1 << 30, InFlight: api.DefaultInFlight,
		Timeout: unit.Duration(api.DefaultTimeout), DatabaseTimeout: unit.Duration(cloudsql.DefaultTimeout), Drain: unit.Duration(time.Second),
	}
}

// LoadConfig reads a member's file; call Complete next. Mistakes in the file are strict.Problems.
func LoadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading a member's configuration: %w", err)
	}
	root, err := strict.Parse(path, data)
	if err != nil {
		return Config{}, err
	}
	var c Config
	if problems := strict.Decode(root, &c, ""); len(problems) > 0 {
		return Config{}, problems
	}
	return c, nil
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Complete checks the configuration and fills in derived values.
func (c *Config) Complete() error {
	for what, name := range map[string]string{"cluster": c.Cluster, "name": c.Name, "cloud": c.Cloud} {
		if !namePattern.MatchString(name) {
			return fmt.Errorf("%w: %s %q: letters, digits, dots, underscores and hyphens, at most 63", ErrConfig, what, name)
		}
	}
	if c.Data == "" {
		return fmt.Errorf("%w: data directory is missing", ErrConfig)
	}
	if c.ID == 0 {
		c.ID = MemberID(c.Name)
	}
	if c.Advertise == "" {
		c.Advertise = c.Listen
	}
	if c.DatabaseTimeout < 0 {
		return fmt.Errorf("%w: database_timeout %v", ErrConfig, c.DatabaseTimeout.Duration())
	}
	if c.Database == "" && !c.Witness {
		c.Database = "sqlite:" + filepath.Join(c.Data, "hydra.db")
	}
	for _, addr := range []string{c.Listen, c.Peer} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("%w: address %q is not host:port: %w", ErrConfig, addr, err)
		}
	}
	secure := c.Certificate != ""
	if secure != (c.Key != "") || secure != (c.Authority != "") {
		return fmt.Errorf("%w: certificate, key and authority belong together", ErrConfig)
	}
	if err := c.checkExposure(secure); err != nil {
		return err
	}
	if c.Direct {
		return nil
	}
	return c.completeMembers()
}

func (c *Config) checkExposure(secure bool) error {
	if c.Insecure {
		return nil
	}
	err := bearer.CheckExposure(c.Listen, secure, c.Tokens != "")
	if err == nil && !c.Direct {
		err = bearer.CheckExposure(c.Peer, secure, true)
	}
	if err != nil {
		return advice.With(fmt.Errorf("%w: %w", ErrConfig, err), "make keys and tokens with `hydra init`, or pass --insecure in a laboratory")
	}
	return nil
}

func (c *Config) completeMembers() error {
	if c.Witness && c.Database != "" {
		return fmt.Errorf("%w: a witness has no database", ErrConfig)
	}
	there := false
	ids, names := make(map[uint64]bool), make(map[string]bool)
	for i := range c.Members {
		m := &c.Members[i]
		if m.ID == 0 {
			m.ID = MemberID(m.Name)
		}
		if ids[m.ID] || names[m.Name] {
			return fmt.Errorf("%w: member %s (%d) is listed twice", ErrConfig, m.Name, m.ID)
		}
		ids[m.ID], names[m.Name] = true, true
		if m.ID != c.ID {
			continue
		}
		there = true
		if m.Cloud != c.Cloud || m.Witness != c.Witness || m.Name != c.Name {
			return fmt.Errorf("%w: cloud or role of %s differs from the list of members", ErrConfig, c.Name)
		}
	}
	switch {
	case c.Join:
	case len(c.Members) == 0:
		c.Members = []MemberConfig{{ID: c.ID, Name: c.Name, Cloud: c.Cloud, Peer: c.Peer, API: c.Advertise, Witness: c.Witness}}
	case !there:
		return fmt.Errorf("%w: %s is not in the list of members", ErrConfig, c.Name)
	}
	return nil
}

// ParseMember parses the form of a flag: NAME=CLOUD,PEER[,API][,witness].
func ParseMember(text string) (MemberConfig, error) {
	name, rest, ok := strings.Cut(text, "=")
	parts := strings.Split(rest, ",")
	if n := len(parts); ok && parts[n-1] == "witness" {
		m, err := ParseMember(name + "=" + strings.Join(parts[:n-1], ","))
		m.Witness = true
		return m, err
	}
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return MemberConfig{}, fmt.Errorf("%w: member %q is not NAME=CLOUD,PEER[,API][,witness]", ErrConfig, text)
	}
	m := MemberConfig{Name: name, Cloud: parts[0], Peer: parts[1]}
	if id, name, ok := strings.Cut(name, ":"); ok {
		if _, err := fmt.Sscan(id, &m.ID); err != nil {
			return m, fmt.Errorf("%w: member %q: ID is not a number", ErrConfig, text)
		}
		m.Name = name
	}
	if len(parts) == 3 {
		m.API = parts[2]
	}
	return m, nil
}

func (c *Config) logDir() string { return filepath.Join(c.Data, "log") }

// MemberID derives a member's ID from its name.
func MemberID(name string) uint64 { return consensus.MemberID(name) }
