package dns

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
)

var ErrZone = errors.New("invalid zone")

// Config is a zone file.
type Config struct {
	// Zone is the apex: "hydra.test".
	Zone string `yaml:"zone" jsonschema:"required"`
	// TTL of addresses in whole seconds: how long resolvers may keep the address of a lost cloud.
	TTL unit.Duration `yaml:"ttl" jsonschema:"default=1s"`
	// NegativeTTL is how long resolvers may keep the absence of a name, in whole seconds.
	NegativeTTL unit.Duration `yaml:"negative_ttl" jsonschema:"default=1s"`
	// Order of the addresses in an answer: rotating or random.
	Order string `yaml:"order" jsonschema:"default=rotate,enum=rotate,enum=random"`
	// AllUnhealthy is the answer if no target is healthy: all targets, because a broken check is more
	// likely, or the failure "servfail".
	AllUnhealthy string       `yaml:"all_unhealthy" jsonschema:"default=all,enum=all,enum=servfail"`
	Nameservers  []Nameserver `yaml:"nameservers"`
	Check        HealthCheck  `yaml:"check"`
	Names        []Name       `yaml:"names"`
}

// Nameserver is a host that serves the zone.
type Nameserver struct {
	Name      string   `yaml:"name" jsonschema:"required"`
	Addresses []string `yaml:"addresses" jsonschema:"required,minItems=1"`
}

// HealthCheck configures the checks of targets.
type HealthCheck struct {
	Interval unit.Duration `yaml:"interval" jsonschema:"default=500ms"`
	Timeout  unit.Duration `yaml:"timeout" jsonschema:"default=500ms"`
	// Fall and Rise are the numbers of consecutive checks that change a target's health.
	Fall int `yaml:"fall" jsonschema:"default=2,minimum=1"`
	Rise int `yaml:"rise" jsonschema:"default=2,minimum=1"`
}

// Name is a name of the zone: the addresses of its healthy targets, or those of another name (an ANAME).
type Name struct {
	// Name is relative to the zone; "@" is the apex.
	Name    string   `yaml:"name" jsonschema:"required"`
	Targets []Target `yaml:"targets"`
	// Alias is another name of the zone: relative to it, or absolute with a final dot.
	Alias string `yaml:"alias"`
}

// Target is an address with a health check.
type Target struct {
	Address string `yaml:"address" jsonschema:"required"`
	// Check is a URL that answers 2xx while the target is healthy, or tcp://HOST:PORT, which must
	// accept connections. Without Check the target is always healthy.
	Check string `yaml:"check"`
}

// Load reads a zone file. Mistakes are strict.Problems, or wrap ErrZone.
func Load(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading the zone: %w", err)
	}
	return Parse(path, data)
}

// Parse parses a zone file; messages refer to it as name.
func Parse(name string, data []byte) (Config, error) {
	var c Config
	root, err := strict.Parse(name, data)
	if err != nil {
		return c, err
	}
	if problems := strict.Decode(root, &c, ""); len(problems) > 0 {
		return c, problems
	}
	return c, c.validate()
}

func Defaults(zone string) Config {
	return Config{
		Zone: zone, TTL: unit.Duration(time.Second), NegativeTTL: unit.Duration(time.Second),
		Order: "rotate", AllUnhealthy: "all",
		Check: HealthCheck{Interval: unit.Duration(500 * time.Millisecond), Timeout: unit.Duration(500 * time.Millisecond), Fall: 2, Rise: 2},
	}
}

func (c Config) validate() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w %s: %s", ErrZone, c.Zone, fmt.Sprintf(format, args...))
	}
	if _, ok := dns.IsDomainName(c.Zone); !ok || c.Zone == "" || c.Zone == "." {
		return wrong("%q is not a domain name", c.Zone)
	}
	for what, ttl := range map[string]unit.Duration{"ttl": c.TTL, "negative_ttl": c.NegativeTTL} {
		if d := time.Duration(ttl); d < 0 || d%time.Second != 0 || d > 24*time.Hour {
			return wrong("%s is %v; it is in whole seconds, at most a day", what, d)
		}
	}
	if c.Check.Interval <= 0 || c.Check.Timeout <= 0 || c.Check.Fall < 1 || c.Check.Rise < 1 {
		return wrong("a check needs an interval, a timeout, fall and rise")
	}
	for _, ns := range c.Nameservers {
		if ns.Name == "@" {
			return wrong("a name server needs a name of its own, not @")
		}
		for _, a := range ns.Addresses {
			if _, err := netip.ParseAddr(a); err != nil {
				return wrong("name server %s: %v", ns.Name, err)
			}
		}
	}
	seen := map[string]bool{}
	for _, n := range c.Names {
		name := c.absolute(n.Name)
		switch {
		case n.Name == "":
			return wrong("a name is empty")
		case seen[name]:
			return wrong("name %s is listed twice", n.Name)
		case (n.Alias == "") == (len(n.Targets) == 0):
			return wrong("name %s needs either targets or an alias", n.Name)
		}
		if _, ok := dns.IsDomainName(name); !ok || !dns.IsSubDomain(c.apex(), name) {
			return wrong("name %q is not in the zone", n.Name)
		}
		seen[name] = true
		for _, t := range n.Targets {
			if err := t.validate(); err != nil {
				return wrong("%s: %v", n.Name, err)
			}
		}
	}
	for _, n := range c.Names {
		if err := c.checkAlias(n); err != nil {
			return wrong("%v", err)
		}
	}
	return nil
}

func (c Config) checkAlias(n Name) error {
	first, seen := n.Name, map[string]bool{}
	for n.Alias != "" {
		to := c.absolute(n.Alias)
		if !dns.IsSubDomain(c.apex(), to) {
			return fmt.Errorf("alias %s of %s is outside the zone", n.Name, to)
		}
		if seen[to] {
			return fmt.Errorf("aliases of %s form a cycle", first)
		}
		seen[to] = true
		next, ok := Name{}, false
		for _, m := range c.Names {
			if c.absolute(m.Name) == to {
				next, ok = m, true
			}
		}
		if !ok {
			return fmt.Errorf("alias %s: no name %s", n.Name, n.Alias)
		}
		n = next
	}
	return nil
}

func (t Target) validate() error {
	if _, err := netip.ParseAddr(t.Address); err != nil {
		return err
	}
	if t.Check == "" {
		return nil
	}
	u, err := url.Parse(t.Check)
	if err != nil {
		return err
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "tcp":
		return fmt.Errorf("check %s: want http, https or tcp", t.Check)
	case u.Host == "", u.Scheme == "tcp" && u.Port() == "":
		return fmt.Errorf("check %s: missing host or port", t.Check)
	}
	return nil
}

func (c Config) apex() string { return dns.CanonicalName(c.Zone) }

func (c Config) absolute(name string) string {
	switch {
	case name == "@":
		return c.apex()
	case strings.HasSuffix(name, "."):
		return dns.CanonicalName(name)
	}
	return dns.CanonicalName(name + "." + c.Zone)
}
