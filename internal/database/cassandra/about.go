package cassandra

import (
	"time"

	"skerry/internal/database"
)

// About is what the laboratory and its documentation know of Cassandra.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes(),
	Choices:  choices,
	Protocol: "cql",
	Row:      database.Row{Scan: "yes, in the order of hashes", Replicas: "yes", Smallest: "1 node"},
	Suite:    database.Suite{Takes: 150 * time.Second, Alone: true},
	Smoke: database.Smoke{
		Text: "Does Cassandra work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records, each on two of " +
			"the nodes.",
		Options: "{replication_factor: 2}",
	},
}
