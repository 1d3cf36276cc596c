package hbase

import "skerry/internal/database"

// choices: a row is served by one server at a time, from files with several copies.
func choices(p database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "two copies", Options: database.Options{"replication": min(2, len(p.Nodes))}, Reads: database.ReadsLinearizable,
		GivesUp: "rows of a server that is lost wait until it is given up and its log is read",
	}}
}
