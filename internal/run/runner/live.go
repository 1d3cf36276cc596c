package runner

import (
	"path/filepath"

	"skerry/internal/run/live"
)

// show opens the run for onlookers, until what it returns is called. A run that nobody can
// look at, on a file system without sockets, goes on.
func (r *run) show() (close func() error) {
	run := r.writer.Run()
	feed := live.New(live.Run{
		Name: filepath.Base(r.writer.Dir()), Experiment: run.Name, Description: run.Description, Planned: len(run.Plan), Version: run.Versions.Skerry,
	}, r.writer.Summary().Trials...)
	socket, err := live.Listen(r.writer.Dir(), feed, r.Log)
	if err != nil {
		r.Progress.Linef("note: the dashboard cannot follow this run: %v", err)
		return func() error { return nil }
	}
	r.live = feed
	return socket.Close
}
