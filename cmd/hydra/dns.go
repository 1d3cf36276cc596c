package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/systems/hydra/balancer"
	"skerry/systems/hydra/dns"
)

func newDNS(a *cli.App) *cobra.Command {
	var listen, zone, metrics string
	var targets, hosts []string
	c := &cobra.Command{
		Use:   "dns [FILE]",
		Short: "Run an authoritative DNS server that answers with healthy clouds",
		Long: "Serve a zone over UDP and TCP. Its names have targets in several clouds. An answer has the addresses of the healthy\n" +
			"targets in rotating order, with a short TTL. An alias is flattened (ANAME), also at the apex. If no target is healthy,\n" +
			"the answer has all targets. The zone is a YAML file, or the apex with its targets from flags, checked over HTTP.",
		Example: `  hydra dns zone.yaml --listen 0.0.0.0:53
  hydra dns --zone hydra.test --target http://10.0.0.9:8080/-/ready --target http://10.1.0.9:8080/-/ready --listen 127.0.0.1:5353
  dig @127.0.0.1 -p 5353 hydra.test`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var config dns.Config
			var err error
			switch {
			case len(args) == 1 && len(targets) == 0:
				config, err = dns.Load(args[0])
			case len(args) == 0 && len(targets) > 0:
				config, err = zoneOf(zone, targets)
			default:
				err = errors.New("either a zone file or --target required")
			}
			if err != nil {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
			}
			a.LogAtInfo()
			registry := prometheus.NewRegistry()
			s, err := dns.New(config, dns.Options{Listen: listen, Log: a.Log, Registry: registry})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "serving %s at %s\n", config.Zone, s.Addr())
			if metrics == "" {
				return s.Run(cmd.Context())
			}
			return balancer.WithMetrics(cmd.Context(), metrics, hosts, registry, s.Run)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:5353", "listen on `ADDR`")
	c.Flags().StringVar(&zone, "zone", "hydra.test", "with --target, `NAME` of the zone")
	c.Flags().StringArrayVar(&targets, "target", nil, "`URL` that returns 2xx while its host, an IP address, is healthy")
	c.Flags().StringVar(&metrics, "metrics", "", "serve Prometheus metrics at `ADDR`/metrics")
	c.Flags().StringArrayVar(&hosts, "host", nil, "additional host `NAME` that --metrics accepts (repeatable)")
	return c
}

// zoneOf returns a zone whose apex has the given targets.
func zoneOf(zone string, targets []string) (dns.Config, error) {
	c := dns.Defaults(zone)
	apex := dns.Name{Name: "@"}
	for _, t := range targets {
		u, err := url.Parse(t)
		if err != nil {
			return c, err
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if err != nil {
			return c, fmt.Errorf("target %s: %w", t, err)
		}
		apex.Targets = append(apex.Targets, dns.Target{Address: addr.String(), Check: t})
	}
	c.Names = []dns.Name{apex}
	return c, nil
}

// listenTCP opens a TCP listener.
func listenTCP(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, advice.With(fmt.Errorf("listen on %s: %w", addr, err), "choose another address with --listen")
	}
	return l, nil
}
