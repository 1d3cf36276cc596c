package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"skerry/systems/consensus/ca"
)

// identityFlags are the flags of the certificate of a process.
type identityFlags struct{ cert, key, authority string }

func (f *identityFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.cert, "cert", "", "certificate `FILE` for the data layer; requires --key and --ca")
	c.Flags().StringVar(&f.key, "key", "", "key `FILE` of the certificate")
	c.Flags().StringVar(&f.authority, "ca", "", "certificate `FILE` of the authority")
	c.MarkFlagsRequiredTogether("cert", "key", "ca")
}

// watch logs the expiry of a certificate until end is called.
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

// client returns the TLS configuration of connections to the data layer, nil without a certificate.
func (f *identityFlags) client() (func() *tls.Config, error) {
	i, given, err := f.load()
	if err != nil || !given {
		return nil, err
	}
	return i.Client(nil, ca.Member, ca.Application), nil
}
