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

// ErrConfig says that a member's configuration makes no sense.
var ErrConfig = errors.New("bad configuration of a member")

// Config is a member as its file describes it.
type Config struct {
	// Cluster is the cluster's name, the same at all of its members.
	Cluster string `yaml:"cluster" jsonschema:"required"`
	// ID is not 0 and never used again after the member's removal; made of the name when 0.
	ID uint64 `yaml:"id"`
	// Name is unique in the cluster, Cloud is where the member stands.
	Name  string `yaml:"name" jsonschema:"required"`
	Cloud string `yaml:"cloud" jsonschema:"required"`
	// Listen is the address of the HTTP interface, Peer that for other members.
	Listen string `yaml:"listen" jsonschema:"default=127.0.0.1:7070"`
	Peer   string `yaml:"peer" jsonschema:"default=127.0.0.1:7071"`
	// Advertise is where others reach the interface, Listen when empty.
	Advertise string `yaml:"advertise"`
	// Hosts are further names that the interface answers to.
	Hosts []string `yaml:"hosts"`
	// Data is the directory of the log.
	Data string `yaml:"data" jsonschema:"required"`
	// Database is the cloud's: sqlite:PATH (in Data when empty), postgres:// or mysql://.
	Database string `yaml:"database"`
	// DatabaseTimeout is for how long a database's server may say nothing while it is asked,
	// before it is taken for away.
	DatabaseTimeout unit.Duration `yaml:"database_timeout" jsonschema:"default=5s"`
	// Witness has a vote and the log but no database.
	Witness bool `yaml:"witness"`
	// Members of a new cluster, this one among them; the same at each.
	Members []MemberConfig `yaml:"members"`
	// Join waits to be added to a running cluster.
	Join bool `yaml:"join"`
	// Direct serves the database by itself, past the log: for measurements.
	Direct bool `yaml:"direct"`

	// Certificate, Key and Authority turn mutual TLS on, at both addresses.
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
	Authority   string `yaml:"authority"`
	// Tokens is a file of bearer tokens.
	Tokens string `yaml:"tokens"`
	// Insecure allows addresses beyond this machine without TLS and tokens.
	Insecure bool `yaml:"insecure"`

	// Election is how long a member goes without its leader before it stands for election;
	// measured round trips decide when 0.
	Election unit.Duration `yaml:"election"`
	// PreferCloud is where the leader should stand; FollowWrites moves it to the cloud
	// that writes most.
	PreferCloud  string `yaml:"prefer_cloud"`
	FollowWrites bool   `yaml:"follow_writes"`
	// MaxLog bounds the log on disk, MaxAge how long it waits for a database that does not
	// apply it (0: for ever).
	MaxLog unit.Bytes    `yaml:"max_log" jsonschema:"default=1GiB"`
	MaxAge unit.Duration `yaml:"max_age"`
	// InFlight is how many requests are served at a time.
	InFlight int64 `yaml:"in_flight" jsonschema:"default=4096"`
	// Timeout bounds an operation.
	Timeout unit.Duration `yaml:"timeout" jsonschema:"default=10s"`
	// Drain is how long a member that is told to end has balancers look elsewhere first.
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

// Defaults are a member's settings where nothing is said.
func Defaults() Config {
	return Config{
		Listen: "127.0.0.1:7070", Peer: "127.0.0.1:7071", MaxLog: 1 << 30, InFlight: api.DefaultInFlight,
		Timeout: unit.Duration(api.DefaultTimeout), DatabaseTimeout: unit.Duration(cloudsql.DefaultTimeout), Drain: unit.Duration(time.Second),
	}
}

// LoadConfig reads a member's file, which Complete has still to check. Mistakes in it are
// strict.Problems.
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

// namePattern is what names of members, clouds and clusters look like.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Complete checks a configuration and fills in what follows from the rest.
func (c *Config) Complete() error {
	for what, name := range map[string]string{"cluster": c.Cluster, "name": c.Name, "cloud": c.Cloud} {
		if !namePattern.MatchString(name) {
			return fmt.Errorf("%w: %s %q: letters, digits, dots, underscores and hyphens, at most 63", ErrConfig, what, name)
		}
	}
	if c.Data == "" {
		return fmt.Errorf("%w: no directory for data", ErrConfig)
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
		return advice.With(fmt.Errorf("%w: %w", ErrConfig, err), "make keys and tokens with `hydra init`, or say --insecure in a laboratory")
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
			return fmt.Errorf("%w: the list of members says otherwise of %s", ErrConfig, c.Name)
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

// ParseMember reads a member as a flag gives it: NAME=CLOUD,PEER[,API][,witness].
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
			return m, fmt.Errorf("%w: member %q: its ID is no number", ErrConfig, text)
		}
		m.Name = name
	}
	if len(parts) == 3 {
		m.API = parts[2]
	}
	return m, nil
}

// logDir is where the log is.
func (c *Config) logDir() string { return filepath.Join(c.Data, "log") }

// MemberID is the ID of a member of a name that none was given for.
func MemberID(name string) uint64 { return consensus.MemberID(name) }
