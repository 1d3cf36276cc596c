package metadata

import (
	"skerry/internal/database"
)

// About is what the laboratory and its documentation know of the metadata service.
var About = database.About{
	Name: Name, New: func() database.Database { return New() },
	Row: database.Row{Resize: "yes, of one server", Replicas: "every replica has its server's tree", Smallest: "1 node; 3 survive a loss"},
	Smoke: database.Smoke{
		Text: "Does the laboratory work here? Three nodes 5 ms apart with the metadata service, which is part of " +
			"skerry so that nothing has to be installed: one tree spread over three servers, and the mix of " +
			"operations that production file systems have.",
		Options:  "{servers: node}",
		Workload: "{name: namespace, records: 1000, threads: 8, properties: {shared: 0.2}}",
	},
}
