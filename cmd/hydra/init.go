package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/systems/consensus/ca"
)

func newInit(a *cli.App) *cobra.Command {
	var cluster string
	var members, applications, renew []string
	var days int
	var add, list, asJSON bool
	c := &cobra.Command{
		Use:   "init DIR",
		Short: "Create a certificate authority, certificates and tokens",
		Long: "Create a certificate authority for one deployment in DIR, a certificate and key for each member and application, and\n" +
			"tokens for the API: token-read, token-write and token-admin with one scope each, and tokens with all scopes for\n" +
			"members. Keys and tokens have mode 0600. Existing files are not overwritten. --add issues more certificates. --list\n" +
			"lists the certificates with their expiry. --renew replaces a certificate by one with the same key, name and\n" +
			"addresses, valid for --days from now. Processes that use the file, or a copy of it, load it for their next\n" +
			"connection. Keep ca.key off the machines of members: they need ca.crt, and their own certificate and key.",
		Example: `  hydra init pki --member aws-1=10.0.0.1 --member gcp-1=10.1.0.1,gcp-1.example --app wallet
  hydra init pki --add --member aws-2=10.0.0.2 --days 90
  hydra init pki --renew aws-1 --renew wallet
  hydra init pki --list`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			if list {
				return listCertificates(a, dir, asJSON)
			}
			if len(renew) > 0 {
				return renewCertificates(a, dir, renew, days, asJSON)
			}
			if len(members)+len(applications) == 0 {
				return advice.With(fmt.Errorf("%w: no --member or --app given", cli.ErrUsage),
					"name members with --member NAME=ADDRESS, applications with --app NAME")
			}
			now := time.Now()
			var authority *ca.Authority
			var err error
			if add {
				authority, err = ca.Open(dir)
			} else if authority, err = ca.Init(dir, cluster, max(days, authorityDays), now); err == nil {
				err = ca.WriteTokens(dir)
			}
			if errors.Is(err, ca.ErrSubject) {
				err = fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			if err != nil {
				return err
			}
			for _, subjects := range []struct {
				role  ca.Role
				names []string
			}{{ca.Member, members}, {ca.Application, applications}} {
				for _, n := range subjects.names {
					name, hosts, _ := strings.Cut(n, "=")
					s := ca.Subject{Name: name, Role: subjects.role}
					if hosts != "" {
						s.Hosts = strings.Split(hosts, ",")
					}
					if err := authority.Issue(s, days, now); err != nil {
						return err
					}
				}
			}
			return listCertificates(a, dir, asJSON)
		},
	}
	c.Flags().StringVar(&cluster, "cluster", "hydra", "`NAME` of the cluster in its certificates")
	c.Flags().StringArrayVar(&members, "member", nil, "member: `NAME[=HOST,...]` with its host names and addresses")
	c.Flags().StringArrayVar(&applications, "app", nil, "application, such as a load balancer or the wallet: `NAME[=HOST,...]`")
	c.Flags().IntVar(&days, "days", 365, "validity of certificates in days; the authority is valid for at least ten years")
	c.Flags().BoolVar(&add, "add", false, "add certificates to the authority in DIR")
	c.Flags().BoolVar(&list, "list", false, "list the certificates in DIR")
	c.Flags().BoolVar(&asJSON, "json", false, "print the certificates as JSON")
	c.Flags().StringArrayVar(&renew, "renew", nil, "renew the certificate of `NAME` with the same key and addresses")
	for _, other := range []string{"list", "member", "app"} {
		c.MarkFlagsMutuallyExclusive("renew", other)
	}
	c.MarkFlagsMutuallyExclusive("add", "list")
	c.MarkFlagsMutuallyExclusive("add", "renew")
	return c
}

func renewCertificates(a *cli.App, dir string, names []string, days int, asJSON bool) error {
	authority, err := ca.Open(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := authority.Renew(name, days, time.Now()); err != nil {
			if errors.Is(err, ca.ErrSubject) {
				err = fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			return err
		}
	}
	return listCertificates(a, dir, asJSON)
}

// authorityDays is the validity of an authority.
const authorityDays = 3650

// soon is the remaining validity from which listCertificates prints a warning.
const soon = 30 * 24 * time.Hour

func listCertificates(a *cli.App, dir string, asJSON bool) error {
	all, err := ca.List(dir)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return advice.With(fmt.Errorf("no certificates in %s", dir), "create them with `hydra init %s --member NAME=ADDRESS`", dir)
	}
	if asJSON {
		return a.PrintJSON(all)
	}
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tROLE\tEXPIRES\tHOSTS")
	for _, c := range all {
		role := string(c.Role)
		if role == "" {
			role = "authority"
		}
		left := time.Until(c.Expires)
		when := fmt.Sprintf("%s (%d days)", c.Expires.Format(time.DateOnly), int(left.Hours()/24))
		if left < 0 {
			when = c.Expires.Format(time.DateOnly) + " (EXPIRED)"
		} else if left < soon {
			when += " SOON"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Name, role, when, strings.Join(c.Hosts, ","))
	}
	return t.Flush()
}
