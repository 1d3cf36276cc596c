package main

import (
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
	"skerry/systems/metadata/client"
)

// treeReach holds the flags of connections to a metadata server.
type treeReach struct{ tokenFile, authority string }

func (f *treeReach) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the bearer token (default: the token of --tokens auto, on this machine)")
	c.Flags().StringVar(&f.authority, "ca", "", "connect over HTTPS, and trust the authority with the certificate in `FILE`")
}

// options returns the options of a client with the given scope. addrs is a comma-separated list of addresses.
func (f *treeReach) options(a *cli.App, addrs string, wish bearer.Scope) ([]client.Option, error) {
	token, err := a.Token(f.tokenFile, wish, f.authority != "", strings.Split(addrs, ",")...)
	if err != nil {
		return nil, err
	}
	with := []client.Option{client.Token(token)}
	if f.authority != "" {
		config, err := ca.Trust(f.authority)
		if err != nil {
			return nil, err
		}
		with = append(with, client.TLS(config))
	}
	return with, nil
}
