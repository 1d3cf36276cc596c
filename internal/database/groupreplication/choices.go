package groupreplication

import "skerry/internal/database"

// choices: how much a read waits for. The primary stands at the client.
func choices(p database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "reads of the primary", Options: database.Options{"primary": p.Near}, Reads: database.ReadsMonotonic,
		GivesUp: "all requests cross to the primary's site; a primary that is cut off answers with what was until it notices",
	}, {
		Name: "consistency before", Options: database.Options{"primary": p.Near, "group_replication_consistency": "BEFORE"}, Reads: database.ReadsLinearizable,
		GivesUp: "every read waits for the group's order",
	}, {
		Name: "near reads", Options: database.Options{"primary": p.Near, "reads": "member"}, GivesUp: "a read may return what was",
	}}
}
