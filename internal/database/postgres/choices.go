package postgres

import "skerry/internal/database"

// choices: who confirms a write, and who answers reads. The primary stands at the client.
func choices(p database.Placement) []database.Choice {
	if len(p.Nodes) < 2 {
		return []database.Choice{{Name: "alone", Reads: database.ReadsLinearizable, GivesUp: "there is no second copy"}}
	}
	out := []database.Choice{{
		Name: "asynchronous", Options: database.Options{"primary": p.Near}, Reads: database.ReadsLinearizable,
		Loses:   "those that no standby had got when the primary was lost",
		GivesUp: "all requests cross to the primary's site; while that is cut off nothing is answered unless somebody promotes",
	}, {
		Name: "one confirms", Options: database.Options{"primary": p.Near, "synchronous_standby_names": "ANY 1 (*)"}, Reads: database.ReadsLinearizable,
		GivesUp: "a write waits for the nearest standby; all requests cross to the primary's site",
	}, {
		Name: "one confirms, near reads", Options: database.Options{"primary": p.Near, "synchronous_standby_names": "ANY 1 (*)", "read": "nearest"},
		GivesUp: "a read may return what was",
	}}
	return out
}
