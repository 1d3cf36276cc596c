package main

import (
	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
)

// groups are the headings of the help, each with its subcommands.
func groups(a *app) []group {
	return []group{
		{"Experiments:", []*cobra.Command{newInit(a), newChoose(a), newRun(a), newPlay(a), newFire(a), newShow(a), newReport(a), newCompare(a), newReproduce(a), newServe(a), newValidate(a), newSchema(a)}},
		{"A lab by hand:", []*cobra.Command{newLab(a), newYCSB(a)}},
		{"Other machines:", []*cobra.Command{newMachines(a)}},
		{"This machine:", []*cobra.Command{newDoctor(a), newInstall(a), newBench(a), cli.NewVersion(a.App, "skerry", version)}},
	}
}

type group struct {
	title    string
	commands []*cobra.Command
}

// addCommands gives root its subcommands.
func addCommands(root *cobra.Command, a *app) {
	for _, g := range groups(a) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(newMoved("hydra", "hydra"), newMoved("metadata", "metad"), newDocs(a), newWanted(a), newPackaging(), cli.NewMan(), newAgent(a))
}
