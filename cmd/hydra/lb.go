package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
	"skerry/systems/hydra/balancer"
)

func newLB(a *cli.App) *cobra.Command {
	lb := loadBalancer{o: balancer.Defaults()}
	c := &cobra.Command{
		Use:   "lb",
		Short: "Run a load balancer for members and applications",
		Long: "Balance HTTP requests over the members of the data layer (/v1/, /status) and the processes of the application (all\n" +
			"other paths). Backends in the same cloud come first, then by distance and load. Writes go to a nearby leader, else to\n" +
			"a member in the same cloud, which forwards them. Requests that are safe to repeat are retried at another backend:\n" +
			"reads, writes with an idempotency key, and requests that certainly had no effect. Requests above --limit wait in a\n" +
			"queue. Requests above --queue get 503 with Retry-After. On SIGTERM the balancer reports that it is not ready, serves\n" +
			"for --drain, and completes its open requests. Its own paths are /-/ready, /-/healthy, /-/backends and /-/metrics.",
		Example: `  hydra lb --cloud aws --listen 10.0.0.9:8080 --member aws=http://10.0.0.1:7070 --member aws=http://10.0.0.2:7070 \
    --member gcp=http://10.1.0.1:7070 --app aws=http://10.0.0.8:8090`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return lb.run(cmd.Context(), a) },
	}
	lb.flags(c)
	return c
}

// loadBalancer is the command's flags.
type loadBalancer struct {
	o                 balancer.Config
	listen, tokenFile string
	members, apps     []string
	id                identityFlags
	front, insecure   bool
}

func (lb *loadBalancer) run(ctx context.Context, a *cli.App) (err error) {
	if lb.o.Members, err = backends(lb.members); err != nil {
		return err
	}
	if lb.o.Apps, err = backends(lb.apps); err != nil {
		return err
	}
	if lb.o.Name == "" {
		lb.o.Name = "lb-" + lb.o.Cloud
	}
	if lb.o.Token, err = a.Token(lb.tokenFile, bearer.Write, false, urls(lb.o.Members)...); err != nil {
		return err
	}
	identity, given, err := lb.id.load()
	if err != nil {
		return err
	}
	if given {
		lb.o.TLS = identity.Client(nil, ca.Member, ca.Application)
		if lb.front {
			lb.o.Front = identity.Front(nil)
		}
	} else if lb.front {
		return advice.With(fmt.Errorf("%w: --tls requires a certificate", cli.ErrUsage), "give --cert, --key and --ca")
	}
	if err := checkExposed(lb.listen, lb.front, lb.insecure); err != nil {
		return err
	}
	lb.o.Hosts = append(lb.o.Hosts, lb.listen)
	if lb.front {
		lb.o.Hosts = append(lb.o.Hosts, identity.Hosts()...)
	}
	a.LogAtInfo()
	registry := prometheus.NewRegistry()
	lb.o.Log, lb.o.Registry, lb.o.Gatherer = a.Log, registry, registry
	b, err := balancer.New(lb.o)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	l, err := listenTCP(lb.listen)
	if err != nil {
		return err
	}
	if given {
		defer watch(ctx, identity, a.Log)()
	}
	fmt.Fprintf(a.Out, "%s listens on %s\n", lb.o.Name, l.Addr())
	return b.Run(ctx, l)
}

func (lb *loadBalancer) flags(c *cobra.Command) {
	c.Flags().StringVar(&lb.listen, "listen", "127.0.0.1:8080", "listen on `ADDR`")
	cli.HostFlag(c, &lb.o.Hosts)
	c.Flags().StringVar(&lb.o.Cloud, "cloud", "", "`CLOUD` of this load balancer")
	c.Flags().StringVar(&lb.o.Name, "name", "", "name in answers (default lb-CLOUD)")
	c.Flags().StringArrayVar(&lb.members, "member", nil, "member of the data layer: `CLOUD=URL`")
	c.Flags().StringArrayVar(&lb.apps, "app", nil, "process of the application: `CLOUD=URL`")
	c.Flags().DurationVar(&lb.o.Near, "near", lb.o.Near, "maximum distance of a leader in another cloud to which writes go directly")
	c.Flags().IntVar(&lb.o.Limit, "limit", lb.o.Limit, "maximum number of requests at backends, for members and applications each")
	c.Flags().IntVar(&lb.o.Queue, "queue", lb.o.Queue, "maximum number of waiting requests; others are rejected")
	c.Flags().DurationVar(&lb.o.QueueTime, "queue-time", lb.o.QueueTime, "maximum time of a request in the queue")
	c.Flags().DurationVar(&lb.o.Timeout, "timeout", lb.o.Timeout, "timeout of a request with all its attempts")
	c.Flags().DurationVar(&lb.o.Patience, "patience", lb.o.Patience, "time to retry while no backend accepts a request")
	c.Flags().DurationVar(&lb.o.Interval, "interval", lb.o.Interval, "interval between health checks")
	c.Flags().DurationVar(&lb.o.Drain, "drain", lb.o.Drain, "time to serve after SIGTERM")
	c.Flags().BoolVar(&lb.front, "tls", false, "serve HTTPS with the certificate")
	c.Flags().BoolVar(&lb.insecure, "insecure", false, "allow plain HTTP beyond this machine")
	c.Flags().StringVar(&lb.tokenFile, "token-file", "", "`FILE` with the token for health checks of members")
	lb.id.add(c)
}

// checkExposed rejects plain HTTP beyond this machine without --insecure.
func checkExposed(listen string, tls, insecure bool) error {
	if insecure {
		return nil
	}
	if err := bearer.CheckExposure(listen, tls, tls); err != nil {
		return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "give a certificate and --tls, or --insecure on a trusted network")
	}
	return nil
}

// urls returns the URLs of backends.
func urls(of []balancer.Backend) (all []string) {
	for _, b := range of {
		all = append(all, b.URL)
	}
	return all
}

func backends(given []string) (all []balancer.Backend, err error) {
	for _, g := range given {
		cloud, url, ok := strings.Cut(g, "=")
		if !ok || strings.Contains(cloud, "/") {
			return nil, advice.With(fmt.Errorf("%w: %q is not CLOUD=URL", cli.ErrUsage, g), "example: aws=http://10.0.0.1:7070")
		}
		all = append(all, balancer.Backend{Cloud: cloud, URL: url})
	}
	return all, nil
}
