package ndb

import (
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of MySQL NDB Cluster.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices: choices,
	Row:     database.Row{Resize: "join, by node groups", Replicas: "`no_of_replicas`", Smallest: "2 nodes"},
	Suite:   database.Suite{Takes: 9 * time.Minute, Waits: true},
	Smoke: database.Smoke{
		Text: "Does MySQL NDB Cluster work here? Two node groups of two nodes each, 5 ms apart: every record is on " +
			"two nodes. YCSB's workload A on 1,000 records.",
		Topology: "mesh:4,rtt=5ms",
	},
}
