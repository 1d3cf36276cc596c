// Package deploy starts whole deployments of Hydra: two or more clouds with their members
// and a database each, a witness in a further place, and a load balancer and the wallet in
// every cloud, named by a DNS server. It starts them as processes on hosts: on loopback
// for everyone (dev), or on the nodes of a lab (up).
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
	"skerry/systems/hydra/dns"
	"skerry/systems/hydra/hydraclient"
)

// ErrLayout says that there are not the hosts that a deployment needs.
var ErrLayout = errors.New("no room for a deployment")

// Layout says which host is what.
type Layout struct {
	Clouds []Cloud
	// Witness breaks ties: with two clouds and no third place, neither could tell the
	// other's loss from its own. Nil for none.
	Witness host.Host
	// Names has the DNS server; nil for none.
	DNS host.Host
}

// Cloud is one cloud's hosts.
type Cloud struct {
	Name    string
	Members []host.Host
	// Edge has the load balancer and the wallet; nil for none.
	Edge host.Host
}

// Ports that services listen at.
const (
	PortAPI    = 7070
	PortPeer   = 7071
	PortLB     = 8080
	PortWallet = 8090
	PortDNS    = 5353
)

// Options of a deployment.
type Options struct {
	Exe string // the program hydra
	// Zone is the name that the wallet has.
	Zone string
	// DNSPort is where the DNS server answers; 0 for PortDNS, which needs no root.
	DNSPort int
	// Prefer is the cloud whose members should lead, "" for any.
	Prefer string
	// Secure has members and what talks to them prove who they are; Insecure lets services
	// listen beyond this machine, as in a lab.
	Secure, Insecure bool
	// Dir gets the authority, with Secure.
	Dir string
	// Databases names a cloud's SQL database where it is not an SQLite file.
	Databases map[string]string
	// MaxLog bounds each member's log on disk, in bytes; 0 for its default.
	MaxLog int64
	// Drain is how long what ends goes on first.
	Drain time.Duration
	// Wallet is whether wallets are started.
	Wallet bool
}

// HostPort is an address of a host.
func HostPort(h host.Host, port int) string { return net.JoinHostPort(h.Addr(), strconv.Itoa(port)) }

// memberFile is a file of a member's configuration.
type memberFile struct {
	Cluster     string         `yaml:"cluster"`
	Name        string         `yaml:"name"`
	Cloud       string         `yaml:"cloud"`
	Listen      string         `yaml:"listen"`
	Peer        string         `yaml:"peer"`
	Data        string         `yaml:"data"`
	Database    string         `yaml:"database,omitempty"`
	Witness     bool           `yaml:"witness,omitempty"`
	Members     []memberEntry  `yaml:"members"`
	Certificate string         `yaml:"certificate,omitempty"`
	Key         string         `yaml:"key,omitempty"`
	Authority   string         `yaml:"authority,omitempty"`
	Tokens      string         `yaml:"tokens,omitempty"`
	Insecure    bool           `yaml:"insecure,omitempty"`
	PreferCloud string         `yaml:"prefer_cloud,omitempty"`
	MaxLog      *unit.Bytes    `yaml:"max_log,omitempty"`
	Drain       *unit.Duration `yaml:"drain,omitempty"`
}

type memberEntry struct {
	Name    string `yaml:"name"`
	Cloud   string `yaml:"cloud"`
	Peer    string `yaml:"peer"`
	API     string `yaml:"api"`
	Witness bool   `yaml:"witness,omitempty"`
}

const cluster = "hydra"

// witnessCloud is the place of the witness.
const witnessCloud = "witness"

// PlanServices plans a deployment: its services in the order to start them in. Members'
// configuration, the zone and, where they are asked for, keys are written into the hosts'
// directories.
func PlanServices(ctx context.Context, l Layout, o Options) ([]Service, error) {
	if len(l.Clouds) == 0 || len(l.Clouds[0].Members) == 0 {
		return nil, fmt.Errorf("%w: no cloud has members", ErrLayout)
	}
	for name := range o.Databases {
		if !slices.ContainsFunc(l.Clouds, func(c Cloud) bool { return c.Name == name }) {
			return nil, fmt.Errorf("%w: there is no cloud %q to have a database", ErrLayout, name)
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

// PlanFronts plans what stands before members that are there: balancers, wallets where they are asked for, and the DNS
// server, in the order to start them in. The zone is written into its host's directory.
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

// eachMember calls f with every member.
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

// createKeys makes the authority, once.
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
	// walletName is what the balancers are called in the zone, besides its apex.
	walletName      = "wallet"
	certificateDays = 30
	applicationName = "application"
)

func (p *planner) keyFile(file string) string { return filepath.Join(p.Dir, "pki", file) }

func (p *planner) planMembers(ctx context.Context) error {
	var all []memberEntry
	p.eachMember(func(h host.Host, cloud string, witness bool) {
		all = append(all, memberEntry{h.Name(), cloud, HostPort(h, PortPeer), HostPort(h, PortAPI), witness})
	})
	var failed error
	p.eachMember(func(h host.Host, cloud string, witness bool) {
		c := memberFile{
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
		text, err := yaml.Marshal(c)
		if err == nil {
			err = h.Files().Write(ctx, file, 0o600, bytes.NewReader(text))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("writing the configuration of %s: %w", h.Name(), err))
		}
		s := Service{Name: h.Name(), Kind: Member, Cloud: cloud, Host: h, Args: []string{"node", "--config", file}, URL: p.apiURL(h)}
		if witness {
			s.Kind = Witness
		}
		s.Ready = s.URL + "/healthz"
		p.services = append(p.services, s)
	})
	return failed
}

// databaseURL is a cloud's, shared by its members.
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

// credentials are the flags of what talks to members.
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
		args := []string{"lb", "--cloud", c.Name, "--listen", HostPort(c.Edge, PortLB), "--drain", p.Drain.String(), "--host", p.Zone, "--host", walletName + "." + p.Zone}
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
		p.services = append(p.services, Service{Name: "lb-" + c.Name, Kind: Balancer, Cloud: c.Name, Host: c.Edge, Args: args, URL: url, Ready: url + "/-/healthy"})
	}
}

func (p *planner) planWallets() {
	for _, c := range p.Clouds {
		if c.Edge == nil || !p.Wallet {
			continue
		}
		// What the wallet asks of the data layer goes through its cloud's load balancer, which
		// knows the members of all clouds.
		args := []string{"wallet", "--cloud", c.Name, "--listen", HostPort(c.Edge, PortWallet), "--data", HostPort(c.Edge, PortLB)}
		if p.Insecure {
			args = append(args, "--insecure")
		}
		if p.Secure {
			args = append(args, "--token-file", p.keyFile("token-write"))
		}
		url := "http://" + HostPort(c.Edge, PortWallet)
		p.services = append(p.services, Service{Name: "wallet-" + c.Name, Kind: Wallet, Cloud: c.Name, Host: c.Edge, Args: args, URL: url, Ready: url + "/healthz"})
	}
}

// planDNS plans the DNS server, whose zone names every cloud's load balancer.
func (p *planner) planDNS(ctx context.Context) error {
	if p.DNS == nil {
		return nil
	}
	apex := dns.Name{Name: walletName}
	for _, c := range p.Clouds {
		if c.Edge != nil {
			apex.Targets = append(apex.Targets, dns.Target{Address: c.Edge.Addr(), Check: "http://" + HostPort(c.Edge, PortLB) + "/-/ready"})
		}
	}
	if len(apex.Targets) == 0 {
		return advice.With(fmt.Errorf("%w: there is nothing to name", ErrLayout), "give every cloud an edge")
	}
	zone := dns.Defaults(p.Zone)
	zone.Nameservers = []dns.Nameserver{{Name: "ns", Addresses: []string{p.DNS.Addr()}}}
	zone.Names = []dns.Name{{Name: "@", Alias: walletName}, apex}
	text, err := yaml.Marshal(zone)
	file := filepath.Join(p.DNS.Dir(), "zone.yaml")
	if err == nil {
		err = p.DNS.Files().Write(ctx, file, 0o600, bytes.NewReader(text))
	}
	if err != nil {
		return fmt.Errorf("writing the zone: %w", err)
	}
	at := HostPort(p.DNS, cmp.Or(p.DNSPort, PortDNS))
	p.services = append(p.services, Service{
		Name: "dns", Kind: DNSServer, Host: p.DNS, Args: []string{"dns", file, "--listen", at},
		URL: "dns://" + at, Ready: "dns://" + at + "/" + p.Zone,
	})
	return nil
}

// Launch plans a deployment and starts it.
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
		reach.TLS, reach.Token = i.Client(nil, ca.Member), tokens.Own(bearer.Admin)
	}
	return Start(ctx, o.Exe, services, restart, reach, log)
}
