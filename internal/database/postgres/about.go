package postgres

import (
	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of PostgreSQL.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices:  choices,
	Protocol: "postgres",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 2 survive a loss"},
	Smoke: database.Smoke{
		Text: "Does PostgreSQL work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}
