package etcd

import (
	"time"

	"skerry/internal/database"
)

// About is what the laboratory and its documentation know of etcd.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices:  choices,
	Protocol: "etcd",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:    database.Suite{Takes: 40 * time.Second},
	Smoke: database.Smoke{
		Text: "Does etcd work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}
