package trial

import (
	"skerry/internal/database"
	"skerry/internal/host"
)

// explain adds to a failure of the database which of its nodes' disks are full.
func (r *run) explain(err error) error {
	if err == nil {
		return nil
	}
	var nodes []host.Host
	for _, name := range r.Cell.Experiment.DataNodes() {
		if h, e := r.lab.Host(name); e == nil { // one that is gone explains nothing
			nodes = append(nodes, h)
		}
	}
	return database.Explain(err, nodes)
}
