package ferretdb

import (
	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of FerretDB.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Row: database.Row{Note: "(Go toolchain)", Replicas: "no", Smallest: "1 node"},
	Smoke: database.Smoke{
		Text: "Does FerretDB work here? One node that carries it, the client 5 ms away, YCSB's workload A " +
			"on 200 records: FerretDB reads a whole table to find a record.",
		Topology: "{sites: [{name: n1}], defaults: {rtt: 5ms}}",
		Workload: "{name: a, records: 200, threads: 4}",
	},
}
