package cassandra

import "skerry/internal/database"

// choices: how many of the copies answer before a request counts as done.
func choices(p database.Placement) []database.Choice {
	copies := p.Copies()
	out := []database.Choice{{
		Name: "quorum", Options: database.Options{"replication_factor": copies}, Reads: database.ReadsMonotonic,
		GivesUp: "a request waits for the second nearest copy; of two writes at the same time the later clock wins",
	}, {
		Name: "one", Options: database.Options{"replication_factor": copies, "read_consistency": "one", "write_consistency": "one"},
		GivesUp: "a read may return what was; a write is acknowledged when a single copy has it",
	}}
	if copies >= 3 {
		out = append(out, database.Choice{
			Name: "writes to all", Options: database.Options{"replication_factor": copies, "read_consistency": "one", "write_consistency": "all"}, Reads: database.ReadsMonotonic,
			GivesUp: "no write while any copy of its record is away",
		})
	}
	return out
}
