package main

import "github.com/spf13/cobra"

// newHydra groups the programs of Hydra.
func newHydra(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "hydra",
		Short: "A data layer over several clouds' SQL databases",
		Long: "Hydra keeps rows of tables in ordinary SQL databases, one in each cloud, behind one consistent HTTP API that goes\n" +
			"on when a node, a database or a cloud is lost. `skerry hydra dev` starts a whole deployment on this machine.",
	}
	c.AddCommand(newHydraInit(a), newHydraNode(a), newHydraLB(a), newHydraDNS(a), newHydraWallet(a), newHydraDev(a), newHydraUp(a), newHydraStatus(a), newHydraBackup(a), newHydraRestore(a), newHydraAdopt(a))
	return c
}
