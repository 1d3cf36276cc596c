package hbase

import (
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
)

// About is what the laboratory and its documentation know of HBase.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices: choices,
	Row:     database.Row{Replicas: "of HDFS' blocks", Smallest: "1 node"},
	Suite:   database.Suite{Takes: 200 * time.Second, Alone: true},
	Smoke: database.Smoke{
		Text: "Does HBase work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records. ZooKeeper, the " +
			"NameNode and the master are on n1; every node has a DataNode and a RegionServer. Needs Java 11 or 17 " +
			"and 2.5 GiB of memory.",
		Options: "{regions: 3}",
	},
}
