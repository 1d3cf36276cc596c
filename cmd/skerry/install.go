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
		Short: "Fetch databases into a cache folder",
		Long: "Fetch databases into a cache folder ($SKERRY_CACHE, else the user's cache folder, /var/cache/skerry for\n" +
			"root). Debian's packages are fetched with apt and jars from Maven Central, checked and unpacked: nothing\n" +
			"on the system changes, no service starts and no root is needed. What is installed already is left as it\n" +
			"is; what was interrupted goes on. What no registry has as programs is compiled, with --build, from source\n" +
			"in one of Debian's packages; without it the command says how long that takes. A mirror of Maven Central is\n" +
			"taken from SKERRY_MAVEN or ~/.m2/settings.xml, one of Debian, where apt knows none, from SKERRY_DEBIAN.",
		Example:           "  skerry install redis\n  skerry install cassandra cassandra@4.1\n  skerry install redis --from ~/src/redis/src\n  skerry install mongodb --from ./mongodb-org-server_7.0.14_amd64.deb --from ./mongodb-org-mongos_7.0.14_amd64.deb\n  skerry install mysql-ndb --build\n  skerry install --list",
		ValidArgsFunction: completeRecipes,
		RunE: func(cmd *cobra.Command, names []string) error {
			dir, err := install.DefaultDir()
			if err != nil {
				return err
			}
			s := install.Store{Dir: dir, Build: build, Progress: func(step string) { fmt.Fprintln(a.Err, step) }}
			switch {
			case list && (len(names) > 0 || len(from) > 0 || build):
				return fmt.Errorf("%w: --list takes neither names nor --from nor --build", cli.ErrUsage)
			case len(from) > 0 && build:
				return fmt.Errorf("%w: --from is a build already: leave --build out", cli.ErrUsage)
			case list:
				return listInstalled(a, cmd, s, asJSON)
			case len(names) == 0:
				return advice.With(fmt.Errorf("%w: which database?", cli.ErrUsage), "skerry install --list")
			case len(from) > 0 && len(names) != 1:
				return fmt.Errorf("%w: --from is for one database", cli.ErrUsage)
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
	c.Flags().BoolVar(&list, "list", false, "list the databases and what is installed of them")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.Flags().BoolVar(&build, "build", false, "compile what no registry has as programs: "+strings.Join(compiled(), ", "))
	c.Flags().StringArrayVar(&from, "from", nil, "use what you have at `PATH` in place of what is fetched: a folder of programs, an unpacked\narchive, a program, or Debian packages (.deb files or a folder of them), which are unpacked into the\ncache; may be given again for further packages")
	return c
}

// recipes are those of the databases and of the programs that overlays route with.
func recipes() []install.Recipe {
	return slices.Concat(all.Recipes(), lab.OverlayRecipes(), []install.Recipe{service.Recipe})
}

// compiled are the names of what is installed with --build.
func compiled() []string {
	return install.Names(recipes(), func(r install.Recipe) bool { return r.Build != nil })
}

// recipe finds a database's recipe by its name.
func recipe(name string) (install.Recipe, error) {
	var known []string
	for _, r := range recipes() {
		if r.Name == name || r.Key() == name { // of several series the first
			return r, nil
		}
		known = append(known, r.Key())
	}
	err := fmt.Errorf("%w: unknown database %q", cli.ErrUsage, name)
	if near := suggest.Nearest(name, known); near != "" {
		return install.Recipe{}, advice.With(err, "did you mean %s?", near)
	}
	return install.Recipe{}, advice.With(err, "skerry install --list")
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

// support describes how long the makers of a series support it, relative to the month in which that was checked.
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
