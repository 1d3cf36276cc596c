package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/cmd/internal/labprep"
	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/all"
	"skerry/internal/database/custom"
	"skerry/internal/database/external"
	"skerry/internal/kernel/rootless"
	"skerry/internal/lab"
	"skerry/internal/load"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/internal/run/choose"
	"skerry/internal/run/live"
	"skerry/internal/run/runner"
	"skerry/web"
)

// version identifies the source of the build; the Makefile sets it.
var version = "unknown"

// app is the environment of every subcommand.
type app struct {
	*cli.App
	stateDir string // directory of lab journals; "" for the default
	// reportPage returns the page of reports without data.
	reportPage func() ([]byte, error)
}

func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	a := &app{App: cli.New(in, out, errw), reportPage: web.ReportPage}
	return a.Execute(ctx, newRoot(a), doubleDashes(args), exitCode)
}

// exitCode maps an error to its exit code, and returns 0 for any other error.
func exitCode(err error) int {
	for code, all := range map[int][]error{
		cli.ExitUsage:  {runner.ErrSource, compare.ErrCells, record.ErrNotRun, live.ErrInvalid},
		cli.ExitAssert: {runner.ErrAssertions, runner.ErrSuspect, choose.ErrNone},
	} {
		for _, one := range all {
			if errors.Is(err, one) {
				return code
			}
		}
	}
	return cli.ExitOK
}

func newRoot(a *app) *cobra.Command {
	root := cli.NewRoot(a.App, "skerry", "A laboratory for distributed databases on fragmented clouds", version)
	root.PersistentFlags().StringVar(&a.stateDir, "state-dir", "", "`DIR` of lab journals (default $SKERRY_STATE, else /run/skerry)")
	addCommands(root, a)
	cli.Complete(root)
	return root
}

// executable returns the path of this program, which also runs the agents (emulator, load driver).
func executable() (string, error) { return os.Executable() }

// groups returns the groups of commands in the order of the help.
func groups(a *app) []group {
	return []group{
		{"Experiments:", []*cobra.Command{
			newInit(a), newChoose(a), newRun(a), newPlay(a), newFire(a), newShow(a), newReport(a), newCompare(a),
			newReproduce(a), newServe(a), newValidate(a), newSchema(a),
		}},
		{"Labs:", []*cobra.Command{newLab(a), newYCSB(a)}},
		{"Other machines:", []*cobra.Command{newMachines(a)}},
		{"This machine:", []*cobra.Command{newDoctor(a), newInstall(a), newBench(a), cli.NewVersion(a.App, "skerry", version)}},
	}
}

type group struct {
	title    string
	commands []*cobra.Command
}

// addCommands adds all commands to root.
func addCommands(root *cobra.Command, a *app) {
	for _, g := range groups(a) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(
		newMoved("hydra", "hydra"), newMoved("metadata", "metad"),
		newWanted(a), cli.NewPages(a.App), cli.NewMan(), newAgent(a))
}

// prepare prepares a command that creates labs: see labprep.Prepare.
func (a *app) prepare(ctx context.Context) error { return labprep.Prepare(ctx, a.App, a.stateDir) }

// prepareRun prepares a command that runs an experiment: see labprep.Prepare. It undoes the commands of killed runs, then
// drops their tables: an event can have cut off a cluster. Trials on clusters that Skerry did not start need no rights, and
// are not moved to a user namespace, which has another network.
func (a *app) prepareRun(ctx context.Context, needsLab bool) error {
	if rootless.Inside() {
		return nil // prepared outside
	}
	undoErr := labprep.UndoCommands(ctx, a.App)
	done, err := external.Sweep(ctx, external.ScratchRoot(""), all.Databases())
	for _, line := range done {
		fmt.Fprintln(a.Err, line)
	}
	labprep.Warn(a.App, errors.Join(undoErr, err))
	if !needsLab {
		return ctx.Err()
	}
	return a.prepare(ctx)
}

// join restarts the command in the user namespace of the lab, if the lab has one.
func (a *app) join(l lab.Info) error {
	if l.Holder == nil || rootless.Inside() {
		return nil
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	return rootless.Join(*l.Holder, exe, os.Args[1:], labprep.Directories())
}

// remove removes a lab, from within its user namespace if it has one.
func (a *app) remove(ctx context.Context, l lab.Info) error {
	if l.Holder == nil || rootless.Inside() || l.State == lab.StateDead {
		return lab.Remove(ctx, a.stateDir, l.Name)
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	cmd, err := rootless.Command(ctx, *l.Holder, exe, []string{"lab", "down", "--state-dir", a.stateDir, "--", l.Name}, labprep.Directories())
	if err != nil {
		return err
	}
	return a.runInherited(cmd)
}

// runInherited runs a command with the standard streams of this one.
func (a *app) runInherited(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	return cmd.Run()
}

// openDatabase returns the client constructor of a database, or of the null database.
func openDatabase(name string) (func(context.Context, map[string]string) (load.Client, error), error) {
	if name == load.NullName {
		return new(load.NullDatabase).Open, nil
	}
	if db, ok := findDatabase(name); ok {
		return db.Open, nil
	}
	known := append(slices.Sorted(maps.Keys(all.Databases())), load.NullName)
	return nil, advice.With(fmt.Errorf("unknown database %q", name), "databases are %s", strings.Join(known, ", "))
}

// findDatabase returns the database that a client connects to.
func findDatabase(name string) (database.Database, bool) {
	if strings.HasPrefix(name, custom.Prefix) {
		name = database.Exec // its clients read all settings from their properties
	}
	db, ok := all.Databases()[name]
	return db, ok
}
