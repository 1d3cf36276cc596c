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
		Short: "Spread requests over members and applications",
		Long: "Spread HTTP requests over the members of the data layer (/v1/, /status) and the processes of the application (all\n" +
			"else): this cloud's first, then by distance and load. Writes go to the leader when it is near enough, else to a member\n" +
			"here, which forwards them. What is harmless to repeat is repeated elsewhere: reads, writes with an idempotency key, and\n" +
			"what certainly was not done. Above --limit requests wait in a queue; above --queue they get 503 with Retry-After.\n" +
			"On SIGTERM it says that it is not ready, goes on for --drain, and ends what it has begun.\n" +
			"Its own paths are /-/ready, /-/healthy, /-/backends and /-/metrics.",
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
		return advice.With(fmt.Errorf("%w: --tls without a certificate", cli.ErrUsage), "give --cert, --key and --ca")
	}
	if err := exposed(lb.listen, lb.front, lb.insecure); err != nil {
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
	fmt.Fprintf(a.Out, "%s listens at %s\n", lb.o.Name, l.Addr())
	return b.Run(ctx, l)
}

func (lb *loadBalancer) flags(c *cobra.Command) {
	c.Flags().StringVar(&lb.listen, "listen", "127.0.0.1:8080", "`ADDR` to serve at")
	cli.HostFlag(c, &lb.o.Hosts)
	c.Flags().StringVar(&lb.o.Cloud, "cloud", "", "the `CLOUD` that it stands in")
	c.Flags().StringVar(&lb.o.Name, "name", "", "what answers call it (default lb-CLOUD)")
	c.Flags().StringArrayVar(&lb.members, "member", nil, "a member of the data layer: `CLOUD=URL`")
	c.Flags().StringArrayVar(&lb.apps, "app", nil, "a process of the application: `CLOUD=URL`")
	c.Flags().DurationVar(&lb.o.Near, "near", lb.o.Near, "how far a leader of another cloud may be for writes to go straight to it")
	c.Flags().IntVar(&lb.o.Limit, "limit", lb.o.Limit, "requests with backends at once, for members and for applications each")
	c.Flags().IntVar(&lb.o.Queue, "queue", lb.o.Queue, "requests that wait, before others are turned away")
	c.Flags().DurationVar(&lb.o.QueueTime, "queue-time", lb.o.QueueTime, "how long a request waits at most")
	c.Flags().DurationVar(&lb.o.Try, "try", lb.o.Try, "time for an attempt that may be repeated")
	c.Flags().DurationVar(&lb.o.Timeout, "timeout", lb.o.Timeout, "time for a request with all its attempts")
	c.Flags().DurationVar(&lb.o.Patience, "patience", lb.o.Patience, "how long backends are tried while none takes a request")
	c.Flags().DurationVar(&lb.o.Interval, "interval", lb.o.Interval, "between checks of a backend")
	c.Flags().DurationVar(&lb.o.CheckTimeout, "check-timeout", lb.o.CheckTimeout, "time for a check")
	c.Flags().DurationVar(&lb.o.Drain, "drain", lb.o.Drain, "how long it goes on when it is told to end")
	c.Flags().BoolVar(&lb.front, "tls", false, "serve https with the certificate")
	c.Flags().BoolVar(&lb.insecure, "insecure", false, "listen beyond this machine without https")
	c.Flags().StringVar(&lb.tokenFile, "token-file", "", "`FILE` with the token that checks of members send")
	lb.id.add(c)
}

// exposed refuses to serve others in the clear, unless that was asked for.
func exposed(listen string, tls, insecure bool) error {
	if insecure {
		return nil
	}
	if err := bearer.CheckExposure(listen, tls, tls); err != nil {
		return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "give a certificate and --tls, or --insecure on a network that you trust")
	}
	return nil
}

// urls are where backends are.
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
			return nil, advice.With(fmt.Errorf("%w: %q is not CLOUD=URL", cli.ErrUsage, g), "as in aws=http://10.0.0.1:7070")
		}
		all = append(all, balancer.Backend{Cloud: cloud, URL: url})
	}
	return all, nil
}
