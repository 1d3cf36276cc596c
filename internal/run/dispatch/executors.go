// Package registry is the registry of engines: what --on may name.
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

// Options are what is said to an engine beside its name.
type Options struct {
	Sbatch []string `json:"sbatch,omitempty"` // for sbatch
	Image  string   `json:"image,omitempty"`  // of pods
	// Results are the way that results take home, "" for the engine's usual one.
	Results string `json:"results,omitempty"`
}

// Kind is a kind of engine.
type Kind struct {
	// Name is what --on calls it; what stands behind a colon is told to Open.
	Name string
	// About is a sentence about it, Where what stands behind the colon.
	About, Where string
	// Results are the ways that results may take.
	Results string
	// Open makes one; home is for workers who do not see the run directory.
	Open func(where string, o Options, home executor.RunDirectory) (executor.Executor, error)
}

// Kinds lists them.
func Kinds() []Kind {
	return []Kind{
		{Name: "slurm", Where: "PARTITION", About: "a Slurm cluster, as job arrays",
			Results: "shared (the default) or output",
			Open: func(where string, o Options, home executor.RunDirectory) (executor.Executor, error) {
				return slurm.New(where, o.Sbatch, o.Results, home)
			}},
		{Name: "kubernetes", Where: "NAMESPACE", About: "a Kubernetes cluster, as Indexed Jobs",
			Results: "logs (the default), claim:NAME or s3://BUCKET/PREFIX",
			Open: func(where string, o Options, home executor.RunDirectory) (executor.Executor, error) {
				return kubernetes.New(where, o.Image, o.Results, home)
			}},
	}
}

// Open makes the engine that --on names: one of the kinds, or a machines file.
func Open(on string, o Options, home executor.RunDirectory) (executor.Executor, error) {
	name, where, _ := strings.Cut(on, ":")
	for _, k := range Kinds() {
		if k.Name == name {
			return k.Open(where, o, home)
		}
	}
	if ext := filepath.Ext(on); ext == ".yaml" || ext == ".yml" {
		if o.Results != "" {
			return nil, fmt.Errorf("results come from machines with SSH by their connections, and not by %q", o.Results)
		}
		return ssh.New(on, home), nil
	}
	return nil, advice.With(fmt.Errorf("%w: --on %s", executor.ErrUnavailable, cmp.Or(on, `""`)), "there are: %s", strings.Join(Names(), ", "))
}

// Names are what --on takes.
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

// ResultsHelp are the ways that results may take, by engine.
func ResultsHelp() string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, "with --on "+k.Name+" "+k.Results)
	}
	return strings.Join(all, "; ")
}
