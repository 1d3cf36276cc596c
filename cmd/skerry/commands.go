package main

import (
	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
)

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
		newDocs(a), newWanted(a), newPackaging(), cli.NewMan(), newAgent(a))
}
