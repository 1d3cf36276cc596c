package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/suggest"
	"skerry/internal/database/all"
	"skerry/internal/install"
	"skerry/internal/lab"
	"skerry/internal/lab/service"
)

func newInstall(a *app) *cobra.Command {
	var list, asJSON, build bool
	var from []string
	c := &cobra.Command{
		Use:   "install NAME[@SERIES]... | --list",
		Short: "Install databases into a cache folder",
		Long: "Install databases into a cache folder ($SKERRY_CACHE, else the user's cache folder, /var/cache/skerry for root).\n" +
			"Debian packages are fetched with apt, and jars from Maven Central. They are verified and unpacked. The command\n" +
			"needs no root, starts no service and does not change the system. Installed databases are left unchanged, and an\n" +
			"interrupted installation is resumed. --build compiles a database that no registry has as a program from the\n" +
			"source in a Debian package; without it the command prints how long that takes. SKERRY_MAVEN or\n" +
			"~/.m2/settings.xml names a mirror of Maven Central. SKERRY_DEBIAN names a mirror of Debian where apt has none.",
		Example: `  skerry install redis
  skerry install cassandra cassandra@4.1
  skerry install redis --from ~/src/redis/src
  skerry install mongodb --from ./mongodb-org-server_7.0.14_amd64.deb --from ./mongodb-org-mongos_7.0.14_amd64.deb
  skerry install mysql-ndb --build
  skerry install --list`,
		ValidArgsFunction: completeRecipes,
		RunE: func(cmd *cobra.Command, names []string) error {
			dir, err := install.DefaultDir()
			if err != nil {
				return err
			}
			s := install.Store{Dir: dir, Build: build, Progress: func(step string) { fmt.Fprintln(a.Err, step) }}
			switch {
			case list && (len(names) > 0 || len(from) > 0 || build):
				return fmt.Errorf("%w: --list excludes names, --from and --build", cli.ErrUsage)
			case len(from) > 0 && build:
				return fmt.Errorf("%w: --from excludes --build", cli.ErrUsage)
			case list:
				return listInstalled(a, cmd, s, asJSON)
			case len(names) == 0:
				return advice.With(fmt.Errorf("%w: no database given", cli.ErrUsage), "list the databases with: skerry install --list")
			case len(from) > 0 && len(names) != 1:
				return fmt.Errorf("%w: --from requires exactly one database", cli.ErrUsage)
			}
			var done []install.Manifest
			for _, name := range names {
				r, err := recipe(name)
				if err != nil {
					return err
				}
				m, err := s.Put(cmd.Context(), r, from)
				if err != nil {
					return err
				}
				done = append(done, m)
			}
			if asJSON {
				return a.PrintJSON(done)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&list, "list", false, "list the databases and their installed versions")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.Flags().BoolVar(&build, "build", false, "compile databases that no registry has as programs: "+strings.Join(compiled(), ", "))
	c.Flags().StringArrayVar(&from, "from", nil,
		"install from `PATH` instead of the registry: a folder of programs, an unpacked\n"+
			"archive, a program, or Debian packages (.deb files or a folder of them), which are\n"+
			"unpacked into the cache (repeatable)")
	return c
}

// recipes returns the recipes of databases, of the routing programs of overlays, and of the balancer of services.
func recipes() []install.Recipe {
	return slices.Concat(all.Recipes(), lab.OverlayRecipes(), []install.Recipe{service.Recipe})
}

// compiled returns the names of the recipes that need --build.
func compiled() []string {
	return install.Names(recipes(), func(r install.Recipe) bool { return r.Build != nil })
}

// recipe finds a database's recipe by its name.
func recipe(name string) (install.Recipe, error) {
	var known []string
	for _, r := range recipes() {
		if r.Name == name || r.Key() == name { // the first series of the name
			return r, nil
		}
		known = append(known, r.Name, r.Key())
	}
	err := fmt.Errorf("%w: unknown database %q", cli.ErrUsage, name)
	if near := suggest.Nearest(name, known); near != "" {
		return install.Recipe{}, advice.With(err, "did you mean %s?", near)
	}
	return install.Recipe{}, advice.With(err, "list the databases with: skerry install --list")
}

func listInstalled(a *app, cmd *cobra.Command, s install.Store, asJSON bool) error {
	rows := s.List(cmd.Context(), recipes())
	if asJSON {
		return a.PrintJSON(rows)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tRELEASED\tSUPPORT\tVERSION\tSOURCE\tPATH")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t", r.Name, orDash(r.Released), support(r))
		switch {
		case r.Problem != "":
			fmt.Fprintf(w, "-\tdamaged\t%s\n", r.Problem)
		case r.Version == "":
			fmt.Fprintf(w, "-\tnot installed\t%s\n", r.Advice)
		default:
			fmt.Fprintf(w, "%s\t%s\t%s\n", r.Version, r.Source, r.Path)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nThe first series of a name is the default. Release and support were checked in %s.\n", install.SupportChecked)
	return nil
}

// support returns the end of support of a series, relative to the month of the check.
func support(r install.Listed) string {
	switch {
	case r.Ended == "":
		return "-"
	case r.Ended <= install.SupportChecked:
		return "ended " + r.Ended
	}
	return "until " + r.Ended
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
