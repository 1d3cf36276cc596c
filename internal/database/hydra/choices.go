package hydra

import "skerry/internal/database"

// choices: what a read asks, and when a write counts as done.
func choices(database.Place) []database.Choice {
	return []database.Choice{{
		Name: "linearizable", Reads: database.ReadsLinearizable,
		GivesUp: "a read asks the leader for the newest place in the log",
	}, {
		Name: "local reads", Options: database.Options{"reads": "local"}, GivesUp: "a read may return what was",
	}, {
		Name: "bounded reads", Options: database.Options{"reads": "bounded", "staleness": "1s"}, GivesUp: "a read may return what was a second ago",
	}}
}
