package etcd

import "skerry/internal/database"

// choices: one log, and reads that ask its leader or do not.
func choices(p database.Placement) []database.Choice {
	near := database.Options{"leader": p.Near}
	return []database.Choice{{
		Name: "leader at the client", Options: near, Reads: database.ReadsLinearizable,
		GivesUp: "a write waits for the nearer half of the members; without a majority nothing is answered",
	}, {
		Name: "local reads", Options: database.Options{"leader": p.Near, "read": "serializable"},
		GivesUp: "a read may return what was, on a member that is cut off for as long as that lasts",
	}}
}
