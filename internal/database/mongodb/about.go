package mongodb

import (
	"skerry/internal/database"
	"skerry/internal/install"
)

// About describes MongoDB to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices:  choices,
	Protocol: "mongodb",
	Row:      database.Row{Replicas: "yes", Smallest: "1 node; 3 survive a loss"},
	Smoke: database.Smoke{
		Text: "Smoke test of MongoDB. A replica set of three nodes 5 ms apart, YCSB's workload A on 1,000 " +
			"records.",
	},
}

func choices(p database.Placement) []database.Choice {
	if len(p.Nodes) < 3 {
		return nil
	}
	near := p.Near + "=2"
	majority := func(read string) database.Options {
		return database.Options{"priorities": near, "write_concern": "majority", "read_concern": read}
	}
	return []database.Choice{{
		Name: "majority", Options: majority("majority"), Reads: database.ReadsMonotonic,
		GivesUp: "all requests go to the primary's site; a write waits for the majority",
	}, {
		Name: "linearizable", Options: majority("linearizable"), Reads: database.ReadsLinearizable,
		GivesUp: "a read waits for the majority, too",
	}, {
		Name: "w: 1", Options: database.Options{"priorities": near, "write_concern": "1"},
		Loses:   "writes that no other member had when the primary was lost",
		GivesUp: "writes that only the primary has are rolled back",
	}}
}
