package galera

import "skerry/internal/database"

// choices: every member has all data; a read waits for it to be the newest, or does not.
func choices(database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "near reads", GivesUp: "a read may return what was; two writes to a record at the same time end one of them",
	}, {
		Name: "reads wait", Options: database.Options{"wsrep_sync_wait": 1}, Reads: database.ReadsLinearizable,
		GivesUp: "a read waits for what was committed anywhere before it",
	}}
}
