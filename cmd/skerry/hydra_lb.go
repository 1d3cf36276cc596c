package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"skerry/internal/advice"
	"skerry/internal/hydra/api"
	"skerry/internal/hydra/balance"
	"skerry/internal/hydra/ca"
)

func newHydraLB(a *app) *cobra.Command {
	o := balance.Defaults()
	var listen, tokenFile string
	var members, apps []string
	var id identityFlags
	var front, insecure bool
	c := &cobra.Command{
		Use:   "lb",
		Short: "Spread requests over members and applications",
		Long: "Spread HTTP requests over the members of the data layer (/v1/, /status) and the processes of the application (all\n" +
			"else): this cloud's first, then by distance and load. Writes go to the leader when it is near enough, else to a member\n" +
			"here, which forwards them. What is harmless to repeat is repeated elsewhere: reads, writes with an idempotency key, and\n" +
			"what certainly was not done. Above --limit requests wait in a queue; above --queue they get 503 with Retry-After.\n" +
			"On SIGTERM it says that it is not ready, goes on for --drain, and ends what it has begun.\n" +
			"Its own paths are /-/ready, /-/healthy, /-/backends and /-/metrics.",
		Example: `  skerry hydra lb --cloud aws --listen 10.0.0.9:8080 --member aws=http://10.0.0.1:7070 --member aws=http://10.0.0.2:7070 \
    --member gcp=http://10.1.0.1:7070 --app aws=http://10.0.0.8:8090`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Members, err = backends(members); err != nil {
				return err
			}
			if o.Apps, err = backends(apps); err != nil {
				return err
			}
			if o.Name == "" {
				o.Name = "lb-" + o.Cloud
			}
			if o.Token, err = tokenOf(tokenFile); err != nil {
				return err
			}
			identity, given, err := id.load()
			if err != nil {
				return err
			}
			if given {
				o.TLS = identity.Client(nil, ca.Member, ca.Application)
				if front {
					o.Front = identity.Front(nil)
				}
			} else if front {
				return advice.With(fmt.Errorf("%w: --tls without a certificate", errUsage), "give --cert, --key and --ca")
			}
			if err := exposed(listen, front, insecure); err != nil {
				return err
			}
			a.logAtInfo()
			registry := prometheus.NewRegistry()
			o.Log, o.Registry, o.Gatherer = a.log, registry, registry
			b, err := balance.New(o)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			l, err := listenTCP(listen)
			if err != nil {
				return err
			}
			if given {
				defer watch(cmd.Context(), identity, a.log)()
			}
			fmt.Fprintf(a.out, "%s listens at %s\n", o.Name, l.Addr())
			return b.Run(cmd.Context(), l)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "`ADDR` to serve at")
	c.Flags().StringVar(&o.Cloud, "cloud", "", "the `CLOUD` that it stands in")
	c.Flags().StringVar(&o.Name, "name", "", "what answers call it (default lb-CLOUD)")
	c.Flags().StringArrayVar(&members, "member", nil, "a member of the data layer: `CLOUD=URL`")
	c.Flags().StringArrayVar(&apps, "app", nil, "a process of the application: `CLOUD=URL`")
	c.Flags().DurationVar(&o.Near, "near", o.Near, "how far a leader of another cloud may be for writes to go straight to it")
	c.Flags().IntVar(&o.Limit, "limit", o.Limit, "requests with backends at once, for members and for applications each")
	c.Flags().IntVar(&o.Queue, "queue", o.Queue, "requests that wait, before others are turned away")
	c.Flags().DurationVar(&o.QueueTime, "queue-time", o.QueueTime, "how long a request waits at most")
	c.Flags().DurationVar(&o.Try, "try", o.Try, "time for an attempt that may be repeated")
	c.Flags().DurationVar(&o.Timeout, "timeout", o.Timeout, "time for a request with all its attempts")
	c.Flags().DurationVar(&o.Patience, "patience", o.Patience, "how long backends are tried while none takes a request")
	c.Flags().DurationVar(&o.Interval, "interval", o.Interval, "between checks of a backend")
	c.Flags().DurationVar(&o.CheckTimeout, "check-timeout", o.CheckTimeout, "time for a check")
	c.Flags().DurationVar(&o.Drain, "drain", o.Drain, "how long it goes on when it is told to end")
	c.Flags().BoolVar(&front, "tls", false, "serve https with the certificate")
	c.Flags().BoolVar(&insecure, "insecure", false, "listen beyond this machine without https")
	c.Flags().StringVar(&tokenFile, "token-file", "", "`FILE` with the token that checks of members send")
	id.add(c)
	return c
}

// exposed refuses to serve others in the clear, unless that was asked for.
func exposed(listen string, tls, insecure bool) error {
	if insecure {
		return nil
	}
	if err := api.CheckExposure(listen, tls, tls); err != nil {
		return advice.With(fmt.Errorf("%w: %w", errUsage, err), "give a certificate and --tls, or --insecure on a network that you trust")
	}
	return nil
}

func backends(given []string) (all []balance.Backend, err error) {
	for _, g := range given {
		cloud, url, ok := strings.Cut(g, "=")
		if !ok || strings.Contains(cloud, "/") {
			return nil, advice.With(fmt.Errorf("%w: %q is not CLOUD=URL", errUsage, g), "as in aws=http://10.0.0.1:7070")
		}
		all = append(all, balance.Backend{Cloud: cloud, URL: url})
	}
	return all, nil
}

// identityFlags are the certificate of a process.
type identityFlags struct{ cert, key, authority string }

func (f *identityFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.cert, "cert", "", "certificate `FILE` shown to the data layer, with --key and --ca")
	c.Flags().StringVar(&f.key, "key", "", "its key's `FILE`")
	c.Flags().StringVar(&f.authority, "ca", "", "the authority's certificate `FILE`")
	c.MarkFlagsRequiredTogether("cert", "key", "ca")
}

// watch logs of a certificate's life until it is told to end.
func watch(ctx context.Context, i ca.Identity, log *slog.Logger) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { i.Watch(ctx, log) })
	return func() {
		cancel()
		all.Wait()
	}
}

func (f *identityFlags) load() (i ca.Identity, given bool, err error) {
	if f.cert == "" {
		return i, false, nil
	}
	i, err = ca.Load(f.cert, f.key, f.authority, time.Now())
	return i, true, err
}

// client is the configuration of connections to the data layer, nil without a certificate.
func (f *identityFlags) client() (*tls.Config, error) {
	i, given, err := f.load()
	if err != nil || !given {
		return nil, err
	}
	return i.Client(nil, ca.Member, ca.Application), nil
}

// tokenOf reads the token of a file, the first that is enough to write; "" without one.
func tokenOf(path string) (string, error) { return tokenFor(path, api.ScopeWrite) }

// tokenFor is the token of the least scope in a file that is enough for wish, else the one
// that comes nearest.
func tokenFor(path string, wish api.Scope) (string, error) {
	if path == "" {
		return "", nil
	}
	tokens, err := api.LoadTokens(path)
	if err != nil {
		return "", err
	}
	for _, scope := range []api.Scope{wish, api.ScopeWrite, api.ScopeRead} {
		if token := tokens.Own(scope); token != "" {
			return token, nil
		}
	}
	return "", fmt.Errorf("%w: %s holds none that is of use", api.ErrTokens, path)
}
