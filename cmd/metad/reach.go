package main

import (
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
	"skerry/systems/metadata/client"
)

// treeReach is how a command reaches a metadata server.
type treeReach struct{ tokenFile, authority string }

func (f *treeReach) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token to send (default: yours, of --tokens auto, to this machine)")
	c.Flags().StringVar(&f.authority, "ca", "", "ask by https a server whose certificate is of this authority, the `FILE` of its certificate")
}

// with are the options of a client of servers at addresses, with commas between them, that wants
// to do so much.
func (f *treeReach) with(a *cli.App, addrs string, wish bearer.Scope) ([]client.Option, error) {
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
