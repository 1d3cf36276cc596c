package hydra

import "skerry/internal/database"

// choices: what a read asks. The leader stands at the client.
func choices(p database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "linearizable", Options: database.Options{"prefer_cloud": p.Site}, Reads: database.ReadsLinearizable,
		GivesUp: "a read asks the leader for the newest place in the log",
	}, {
		Name: "local reads", Options: database.Options{"prefer_cloud": p.Site, "reads": "local"}, GivesUp: "a read may return what was",
	}, {
		Name: "bounded reads", Options: database.Options{"prefer_cloud": p.Site, "reads": "bounded", "staleness": "1s"}, GivesUp: "a read may return what was a second ago",
	}}
}
