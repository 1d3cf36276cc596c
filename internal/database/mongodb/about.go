package mongodb

import (
	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of MongoDB.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices:  choices,
	Protocol: "mongodb",
	Row:      database.Row{Replicas: "yes", Smallest: "1 node; 3 survive a loss"},
	Smoke: database.Smoke{
		Text: "Does your MongoDB work here? A replica set of three nodes 5 ms apart, YCSB's workload A on 1,000 " +
			"records.",
	},
}
