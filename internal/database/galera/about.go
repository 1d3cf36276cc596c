package galera

import (
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of MariaDB with Galera.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices:  choices,
	Protocol: "mysql",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:    database.Suite{Takes: time.Minute},
	Smoke: database.Smoke{
		Text: "Does MariaDB with Galera work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records. All " +
			"workers write to one member: several members would find writes to the same record in conflict.",
		Options: "{member: first}",
	},
}
