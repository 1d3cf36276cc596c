package ndb

import "skerry/internal/database"

// choices: rows are on all nodes of a group before a write is done.
func choices(p database.Placement) []database.Choice {
	if n := len(p.Nodes); n < 2 || n%2 != 0 {
		return nil
	}
	return []database.Choice{{
		Name: "two copies", Reads: database.ReadsLinearizable,
		GivesUp: "a write crosses between the nodes of a group three times; a group that is cut off whole stops the cluster",
	}}
}
