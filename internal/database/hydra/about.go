package hydra

import (
	"skerry/internal/database"
)

// About is what the laboratory and its documentation know of Hydra.
var About = database.About{
	Name: Name, New: func() database.Database { return New() },
	Choices: choices,
	Row:     database.Row{Replicas: "every cloud has all data", Smallest: "1 node; 3 survive a loss"},
	Smoke: database.Smoke{
		Text: "Does the laboratory work here? Three nodes 5 ms apart with Hydra, which is part of skerry so that " +
			"nothing has to be installed, and YCSB's workload A on 1,000 records.",
	},
}
