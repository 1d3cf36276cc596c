package redis

import "skerry/internal/database"

// choices: a shard has one copy, or a second one that takes over.
func choices(p database.Place) []database.Choice {
	out := []database.Choice{{
		Name: "one copy", Reads: database.ReadsLinearizable,
		GivesUp: "records of a site that is cut off are out of reach until it is back, and with the default options all others too",
	}, {
		Name: "one copy, partial", Options: database.Options{"cluster_require_full_coverage": false}, Reads: database.ReadsLinearizable,
		GivesUp: "records of a site that is cut off are out of reach until it is back",
	}}
	if n := len(p.Nodes); n >= 6 && n%2 == 0 {
		const lost = "those that the master had acknowledged and its replica had not got when it took over"
		out = append(out, database.Choice{
			Name: "a replica", Options: database.Options{"replicas": 1, "cluster_node_timeout": "5s"}, Loses: lost,
			GivesUp: "a master that is cut off answers with what was until it notices; half of the nodes only stand by",
		}, database.Choice{
			Name: "a replica that confirms", Options: database.Options{"replicas": 1, "wait": 1, "cluster_node_timeout": "5s"}, Loses: lost + ", seldom: Redis calls WAIT no guarantee",
			GivesUp: "a write waits for the replica's site; while that is away every write is in doubt",
		})
	}
	return out
}
