// Package dispatch measures the trials of a run on an executor: it submits tasks, polls them, collects
// their results and resubmits tasks that ended without results.
//
// It is the only writer of the run directory. The directory always holds the results and submissions so
// far, so that another process can resume the run, even after a kill.
package dispatch

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor"
	"skerry/internal/run/executor/kubernetes"
	"skerry/internal/run/executor/slurm"
	"skerry/internal/run/executor/ssh"
)

// Options configure an executor.
type Options struct {
	Sbatch []string `json:"sbatch,omitempty"` // of Slurm
	Image  string   `json:"image,omitempty"`  // of Kubernetes pods
	// Results selects how results are collected, "" for the executor's default.
	Results string `json:"results,omitempty"`
}

// Kind is a kind of executor.
type Kind struct {
	// Name is its name in --on; the text after a colon is passed to Open.
	Name string
	// Where describes the text after the colon.
	Where string
	// Results describes the values of --results.
	Results string
	Open    func(where string, o Options, home executor.RunDirectory) (executor.Executor, error)
}

func Kinds() []Kind {
	return []Kind{
		{Name: "slurm", Where: "PARTITION",
			Results: "shared (the default) or output",
			Open: func(where string, o Options, home executor.RunDirectory) (executor.Executor, error) {
				return slurm.New(where, o.Sbatch, o.Results, home)
			}},
		{Name: "kubernetes", Where: "NAMESPACE",
			Results: "logs (the default), claim:NAME or s3://BUCKET/PREFIX",
			Open: func(where string, o Options, home executor.RunDirectory) (executor.Executor, error) {
				return kubernetes.New(where, o.Image, o.Results, home)
			}},
	}
}

// Open opens the executor that --on names: one of the kinds, or a machines file.
func Open(on string, o Options, home executor.RunDirectory) (executor.Executor, error) {
	name, where, _ := strings.Cut(on, ":")
	for _, k := range Kinds() {
		if k.Name == name {
			return k.Open(where, o, home)
		}
	}
	if ext := filepath.Ext(on); ext == ".yaml" || ext == ".yml" {
		if o.Results != "" {
			return nil, fmt.Errorf("invalid --results %q: machines with SSH return results over their connections", o.Results)
		}
		return ssh.New(on, home), nil
	}
	return nil, advice.With(
		fmt.Errorf("%w: --on %s", executor.ErrUnavailable, cmp.Or(on, `""`)), "use one of: %s",
		strings.Join(Names(), ", "),
	)
}

// Names lists the values of --on.
func Names() (all []string) {
	for _, k := range Kinds() {
		name := k.Name
		if k.Where != "" {
			name += "[:" + k.Where + "]"
		}
		all = append(all, name)
	}
	return append(all, "FILE.yaml (a machines file)")
}

// ResultsHelp describes the values of --results for each kind.
func ResultsHelp() string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, "with --on "+k.Name+" "+k.Results)
	}
	return strings.Join(all, "; ")
}
