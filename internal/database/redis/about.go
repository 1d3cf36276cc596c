package redis

import (
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of Redis Cluster.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices:  choices,
	Protocol: "redis",
	Row:      database.Row{Replicas: "yes", Smallest: "3 masters"},
	Suite:    database.Suite{Takes: 50 * time.Second},
	Smoke: database.Smoke{
		Text: "Does Redis Cluster work here? Three masters 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}

// ValkeyAbout is what the laboratory and its documentation know of Valkey.
var ValkeyAbout = database.About{
	Name: Valkey, New: func() database.Database { return NewValkey() }, Recipes: []install.Recipe{ValkeyRecipe},
	Choices: choices,
	Row:     database.Row{Replicas: "yes", Smallest: "3 masters"},
	Smoke: database.Smoke{
		Text: "Does Valkey work here? Three masters 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}
