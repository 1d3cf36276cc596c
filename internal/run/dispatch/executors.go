package dispatch

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/experiment"
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
	if isMachinesFile(on) {
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

func isMachinesFile(on string) bool {
	ext := filepath.Ext(on)
	return ext == ".yaml" || ext == ".yml"
}

// checkClusters refuses what a killed task could leave on a cluster that Skerry did not start. The name of a table, and a
// command that Skerry must run, are on the disk of the task's machine, where the next task cleans up. Other engines choose
// another machine or a new pod for that task. Commands such as kubectl belong to the machine of the user.
func checkClusters(e experiment.Experiment, on string) error {
	for _, c := range e.Plan() {
		k := c.Experiment.Database.Cluster
		switch {
		case k == nil:
		case !isMachinesFile(on):
			return advice.With(fmt.Errorf("%w for %s: a killed task would leave its table on the cluster (%s)",
				executor.ErrUnavailable, e.Name, k), "give a machines file: --on machines.yaml")
		case len(k.Commands()) > 0:
			return advice.With(fmt.Errorf("%w for %s: commands of a cluster run on the machine that runs skerry (%s)",
				executor.ErrUnavailable, e.Name, k.Commands()[0]), "start the cluster yourself and give its servers, or remove --on")
		}
	}
	return nil
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
