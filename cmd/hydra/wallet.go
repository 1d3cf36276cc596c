package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/systems/hydra/hydraclient"
	"skerry/systems/hydra/wallet"
)

func newWallet(a *cli.App) *cobra.Command {
	var listen, cloud, tokenFile string
	var config hydraclient.Config
	var id identityFlags
	var front, insecure bool
	var hosts []string
	c := &cobra.Command{
		Use:   "wallet",
		Short: "Run the wallet, a demo application with a web page",
		Long: "Serve accounts, deposits and transfers, and a page that drives them. The server is stateless: any number of processes\n" +
			"in any cloud serve the same accounts. Every order is one transaction with an idempotency key, so that a repeated\n" +
			"order happens once. /api/sum shows the invariant that no money is lost or created.",
		Example: "  hydra wallet --cloud aws --data 10.0.0.9:8080 --listen 10.0.0.8:8090",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if config.TLS, err = id.client(); err != nil {
				return err
			}
			if config.Token, err = a.Token(tokenFile, bearer.Write, config.TLS != nil, config.Endpoints...); err != nil {
				return err
			}
			data, err := hydraclient.New(config)
			if err != nil {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "name load balancers or members with --data HOST:PORT")
			}
			if err := checkExposed(listen, front, insecure); err != nil {
				return err
			}
			a.LogAtInfo()
			l, err := listenTCP(listen)
			if err != nil {
				return err
			}
			s := wallet.NewServer(wallet.New(data, time.Now), cloud, a.Log)
			fmt.Fprintf(a.Out, "the wallet listens on %s\n", l.Addr())
			if front {
				i, given, err := id.load()
				if err != nil || !given {
					return errors.Join(fmt.Errorf("%w: --tls requires a certificate", cli.ErrUsage), err, l.Close())
				}
				defer watch(cmd.Context(), i, a.Log)()
				l, hosts = tls.NewListener(l, i.Front(nil)), append(hosts, i.Hosts()...)
			}
			return errors.Join(wallet.Serve(cmd.Context(), l, s, append(hosts, listen)...), data.Close())
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "listen on `ADDR`")
	cli.HostFlag(c, &hosts)
	c.Flags().StringVar(&cloud, "cloud", "", "`CLOUD` of this process, shown on the page")
	c.Flags().StringSliceVar(&config.Endpoints, "data", []string{"127.0.0.1:8080"},
		"load balancers or members of the data layer, `HOST:PORT`, in order of preference")
	c.Flags().DurationVar(&config.Timeout, "timeout", 10*time.Second, "timeout of an operation on the data layer")
	c.Flags().StringVar(&tokenFile, "token-file", "", "`FILE` with the token for the data layer")
	c.Flags().BoolVar(&front, "tls", false, "serve HTTPS with the certificate")
	c.Flags().BoolVar(&insecure, "insecure", false, "allow plain HTTP beyond this machine")
	id.add(c)
	return c
}
