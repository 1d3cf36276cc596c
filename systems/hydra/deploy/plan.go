// Package deploy starts deployments of Hydra as processes on hosts: on loopback (dev), or on
// the nodes of a lab (up). A deployment has clouds with members and a database, a witness, a
// load balancer and a wallet in every cloud, and a DNS server.
//
//	client ─► dns ─► lb of a cloud ─► wallet ─► lb ─► members ─► database
//	                                                    ╲ log ╱
//	                                              members of other clouds, witness
package deploy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"

	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/internal/base/unit"
	"skerry/internal/machine/host"
	"skerry/systems/consensus/ca"
	"skerry/systems/hydra/hydraclient"
)

var ErrLayout = errors.New("invalid layout")

// Layout assigns roles to hosts.
type Layout struct {
	Clouds []CloudNodes
	// Witness breaks ties: two clouds cannot distinguish isolation from the loss of the other. Nil for none.
	Witness host.Host
	DNS     host.Host
}

type CloudNodes struct {
	Name    string
	Members []host.Host
	Edge    host.Host
}

const (
	PortAPI    = 7070
	PortPeer   = 7071
	PortLB     = 8080
	PortWallet = 8090
	PortDNS    = 5353
)

type Options struct {
	Exe  string // the program hydra
	Zone string
	// DNSPort is the DNS server's port; PortDNS if 0, which needs no root.
	DNSPort int
	// Prefer is the preferred cloud of the leader, "" for any.
	Prefer string
	// Secure enables mutual TLS and tokens. Insecure lets services listen beyond this machine, as in a lab.
	Secure, Insecure bool
	// Dir holds the authority, with Secure.
	Dir string
	// Databases are URLs of clouds' databases that are not SQLite files.
	Databases map[string]string
	// MaxLog bounds each member's log in bytes; 0 for the default.
	MaxLog int64
	// Drain is how long a stopping service drains.
	Drain  time.Duration
	Wallet bool
}

// HostPort returns the address of a port of h.
func HostPort(h host.Host, port int) string { return net.JoinHostPort(h.Addr(), strconv.Itoa(port)) }

// MemberFile is the configuration file of a member, with the keys of hydra.Config. Its package would link the member into
// every program that starts one.
type MemberFile struct {
	Cluster      string         `yaml:"cluster"`
	ID           uint64         `yaml:"id,omitempty"`
	Name         string         `yaml:"name"`
	Cloud        string         `yaml:"cloud"`
	Listen       string         `yaml:"listen"`
	Peer         string         `yaml:"peer"`
	Data         string         `yaml:"data"`
	Database     string         `yaml:"database,omitempty"`
	Witness      bool           `yaml:"witness,omitempty"`
	Members      []MemberEntry  `yaml:"members,omitempty"`
	Join         bool           `yaml:"join,omitempty"`
	Direct       bool           `yaml:"direct,omitempty"`
	Certificate  string         `yaml:"certificate,omitempty"`
	Key          string         `yaml:"key,omitempty"`
	Authority    string         `yaml:"authority,omitempty"`
	Tokens       string         `yaml:"tokens,omitempty"`
	Insecure     bool           `yaml:"insecure,omitempty"`
	Election     unit.Duration  `yaml:"election,omitempty"`
	PreferCloud  string         `yaml:"prefer_cloud,omitempty"`
	FollowWrites bool           `yaml:"follow_writes,omitempty"`
	MaxLog       *unit.Bytes    `yaml:"max_log,omitempty"`
	MaxAge       unit.Duration  `yaml:"max_age,omitempty"`
	Drain        *unit.Duration `yaml:"drain,omitempty"`
}

type MemberEntry struct {
	ID      uint64 `yaml:"id,omitempty"`
	Name    string `yaml:"name"`
	Cloud   string `yaml:"cloud"`
	Peer    string `yaml:"peer"`
	API     string `yaml:"api"`
	Witness bool   `yaml:"witness,omitempty"`
}

// Write writes the file to the host of the member.
func (f MemberFile) Write(ctx context.Context, on host.Host, path string) error {
	return writeYAML(ctx, on, path, f)
}

func writeYAML(ctx context.Context, on host.Host, path string, v any) error {
	text, err := yaml.Marshal(v)
	if err == nil {
		err = on.Files().Write(ctx, path, 0o600, bytes.NewReader(text))
	}
	if err != nil {
		return fmt.Errorf("writing %s of %s: %w", filepath.Base(path), on.Name(), err)
	}
	return nil
}

const cluster = "hydra"

const witnessCloud = "witness"

// PlanServices returns services in starting order. It writes configurations, zone and keys (Secure) to the hosts.
func PlanServices(ctx context.Context, l Layout, o Options) ([]Service, error) {
	if len(l.Clouds) == 0 || len(l.Clouds[0].Members) == 0 {
		return nil, fmt.Errorf("%w: no cloud has members", ErrLayout)
	}
	for name := range o.Databases {
		if !slices.ContainsFunc(l.Clouds, func(c CloudNodes) bool { return c.Name == name }) {
			return nil, fmt.Errorf("%w: database for unknown cloud %q", ErrLayout, name)
		}
	}
	p := planner{Layout: l, Options: o}
	if err := p.createKeys(); err != nil {
		return nil, err
	}
	if err := p.planMembers(ctx); err != nil {
		return nil, err
	}
	err := p.planFronts(ctx)
	return p.services, err
}

// PlanFronts returns the services in front of existing members in starting order: balancers, wallets
// if enabled, and the DNS server. It writes the zone into its host's directory.
func PlanFronts(ctx context.Context, l Layout, o Options) ([]Service, error) {
	p := planner{Layout: l, Options: o}
	err := p.planFronts(ctx)
	return p.services, err
}

func (p *planner) planFronts(ctx context.Context) error {
	p.planBalancers()
	p.planWallets()
	return p.planDNS(ctx)
}

type planner struct {
	Layout
	Options
	services []Service
}

func (l Layout) eachMember(f func(h host.Host, cloud string, witness bool)) {
	for _, c := range l.Clouds {
		for _, h := range c.Members {
			f(h, c.Name, false)
		}
	}
	if l.Witness != nil {
		f(l.Witness, witnessCloud, true)
	}
}

func (p *planner) createKeys() error {
	if !p.Secure {
		return nil
	}
	if _, err := os.Stat(p.keyFile("ca.crt")); err == nil {
		return nil
	}
	now := time.Now()
	authority, err := ca.Init(p.keyFile(""), cluster, certificateDays, now)
	if err != nil {
		return err
	}
	errs := []error{ca.WriteTokens(p.keyFile(""))}
	p.eachMember(func(h host.Host, _ string, _ bool) {
		errs = append(errs, authority.Issue(ca.Subject{Name: h.Name(), Role: ca.Member, Hosts: []string{h.Addr()}}, certificateDays, now))
	})
	errs = append(errs, authority.Issue(ca.Subject{Name: applicationName, Role: ca.Application}, certificateDays, now))
	return errors.Join(errs...)
}

const (
	// walletName is the balancers' name in the zone, next to the apex.
	walletName      = "wallet"
	certificateDays = 30
	applicationName = "application"
)

func (p *planner) keyFile(file string) string { return filepath.Join(p.Dir, "pki", file) }

func (p *planner) planMembers(ctx context.Context) error {
	var all []MemberEntry
	p.eachMember(func(h host.Host, cloud string, witness bool) {
		all = append(all, MemberEntry{Name: h.Name(), Cloud: cloud, Peer: HostPort(h, PortPeer), API: HostPort(h, PortAPI), Witness: witness})
	})
	var failed error
	p.eachMember(func(h host.Host, cloud string, witness bool) {
		c := MemberFile{
			Cluster: cluster, Name: h.Name(), Cloud: cloud, Listen: HostPort(h, PortAPI), Peer: HostPort(h, PortPeer),
			Data: filepath.Join(h.Dir(), "data"), Witness: witness, Members: all, Insecure: p.Insecure, PreferCloud: p.Prefer,
		}
		if !witness {
			c.Database = p.databaseURL(cloud)
		}
		if p.MaxLog > 0 {
			c.MaxLog = (*unit.Bytes)(&p.MaxLog)
		}
		if p.Drain > 0 {
			c.Drain = (*unit.Duration)(&p.Drain)
		}
		if p.Secure {
			c.Certificate, c.Key, c.Authority = p.keyFile(h.Name()+".crt"), p.keyFile(h.Name()+".key"), p.keyFile("ca.crt")
			c.Tokens = p.keyFile(ca.TokensFile)
		}
		file := filepath.Join(h.Dir(), "member.yaml")
		failed = errors.Join(failed, c.Write(ctx, h, file))
		s := Service{Name: h.Name(), Kind: Member, Cloud: cloud, Host: h, Args: []string{"node", "--config", file}, URL: p.apiURL(h)}
		if witness {
			s.Kind = Witness
		}
		s.Ready = s.URL + "/healthz"
		p.services = append(p.services, s)
	})
	return failed
}

func (p *planner) databaseURL(cloud string) string {
	if url := p.Databases[cloud]; url != "" {
		return url
	}
	for _, c := range p.Clouds {
		if c.Name == cloud {
			return "sqlite:" + filepath.Join(c.Members[0].Dir(), "hydra.db")
		}
	}
	return ""
}

func (p *planner) apiURL(h host.Host) string {
	if p.Secure {
		return "https://" + HostPort(h, PortAPI)
	}
	return "http://" + HostPort(h, PortAPI)
}

func (p *planner) credentials() []string {
	if !p.Secure {
		return nil
	}
	return []string{
		"--cert", p.keyFile(applicationName + ".crt"), "--key", p.keyFile(applicationName + ".key"), "--ca", p.keyFile("ca.crt"),
		"--token-file", p.keyFile("token-write"),
	}
}

func (p *planner) planBalancers() {
	for _, c := range p.Clouds {
		if c.Edge == nil {
			continue
		}
		args := []string{"lb", "--cloud", c.Name, "--listen", HostPort(c.Edge, PortLB), "--drain", p.Drain.String(), "--host",
			p.Zone, "--host", walletName + "." + p.Zone}
		if p.Insecure {
			args = append(args, "--insecure")
		}
		args = append(args, p.credentials()...)
		for _, other := range p.Clouds {
			for _, h := range other.Members {
				args = append(args, "--member", other.Name+"="+p.apiURL(h))
			}
			if p.Wallet && other.Edge != nil {
				args = append(args, "--app", other.Name+"=http://"+HostPort(other.Edge, PortWallet))
			}
		}
		url := "http://" + HostPort(c.Edge, PortLB)
		p.services = append(p.services, Service{Name: "lb-" + c.Name, Kind: Balancer, Cloud: c.Name, Host: c.Edge, Args: args,
			URL: url, Ready: url + "/-/healthy"})
	}
}

func (p *planner) planWallets() {
	for _, c := range p.Clouds {
		if c.Edge == nil || !p.Wallet {
			continue
		}
		// The wallet reaches the data layer through its cloud's load balancer.
		args := []string{"wallet", "--cloud", c.Name, "--listen", HostPort(c.Edge, PortWallet), "--data", HostPort(c.Edge, PortLB)}
		if p.Insecure {
			args = append(args, "--insecure")
		}
		if p.Secure {
			args = append(args, "--token-file", p.keyFile("token-write"))
		}
		url := "http://" + HostPort(c.Edge, PortWallet)
		p.services = append(p.services, Service{Name: "wallet-" + c.Name, Kind: Wallet, Cloud: c.Name, Host: c.Edge, Args: args,
			URL: url, Ready: url + "/healthz"})
	}
}

// planDNS plans the DNS server. Its zone names every cloud's load balancer.
func (p *planner) planDNS(ctx context.Context) error {
	if p.DNS == nil {
		return nil
	}
	// The keys of dns.Config, whose package would link the DNS server into every program that plans a deployment.
	type entry = map[string]any
	var targets []entry
	for _, c := range p.Clouds {
		if c.Edge != nil {
			targets = append(targets, entry{"address": c.Edge.Addr(), "check": "http://" + HostPort(c.Edge, PortLB) + "/-/ready"})
		}
	}
	if len(targets) == 0 {
		return advice.With(fmt.Errorf("%w: no cloud has an edge", ErrLayout), "add an edge to every cloud")
	}
	file := filepath.Join(p.DNS.Dir(), "zone.yaml")
	err := writeYAML(ctx, p.DNS, file, entry{
		"zone":        p.Zone,
		"nameservers": []entry{{"name": "ns", "addresses": []string{p.DNS.Addr()}}},
		"names":       []entry{{"name": "@", "alias": walletName}, {"name": walletName, "targets": targets}},
	})
	if err != nil {
		return err
	}
	at := HostPort(p.DNS, cmp.Or(p.DNSPort, PortDNS))
	p.services = append(p.services, Service{
		Name: "dns", Kind: DNSServer, Host: p.DNS, Args: []string{"dns", file, "--listen", at},
		URL: "dns://" + at, Ready: "dns://" + at + "/" + p.Zone,
	})
	return nil
}

// Launch plans and starts a deployment.
func Launch(ctx context.Context, l Layout, o Options, restart time.Duration, log *slog.Logger) (*Deployment, error) {
	services, err := PlanServices(ctx, l, o)
	if err != nil {
		return nil, err
	}
	var reach hydraclient.Config
	if o.Secure {
		p := planner{Layout: l, Options: o}
		i, err := ca.Load(p.keyFile(applicationName+".crt"), p.keyFile(applicationName+".key"), p.keyFile("ca.crt"), time.Now())
		if err != nil {
			return nil, err
		}
		tokens, err := bearer.Load(p.keyFile(ca.TokensFile))
		if err != nil {
			return nil, err
		}
		reach.TLS, reach.Token = i.Client(nil, ca.Member), tokens.TokenFor(bearer.Admin)
	}
	return Start(ctx, o.Exe, services, restart, reach, log)
}
