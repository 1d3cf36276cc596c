package groupreplication

import (
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of MySQL Group Replication.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices: choices,
	Row:     database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:   database.Suite{Takes: 96 * time.Second},
	Smoke: database.Smoke{
		Text: "Does MySQL Group Replication work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}
