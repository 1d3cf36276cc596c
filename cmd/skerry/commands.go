package main

import "github.com/spf13/cobra"

// commands are the subcommands in the order that help shows them.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newRun(a),
		newShow(a),
		newReport(a),
		newValidate(a),
		newLab(a),
		newSchema(a),
		newInstall(a),
		newDoctor(a),
		newYCSB(a),
		newBench(a),
		newDocs(a),
		newAgent(a),
	}
}
